//! Detached orchestrations: started without waiting for them.
//!
//! The start is part of the round that asked for it, so it happens exactly once. The starter has no result to wait
//! for; a client can read it by the id.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::prelude::*;

async fn sign_up(ctx: OrchestrationContext, customer: String) -> Result<String, String> {
    ctx.schedule_orchestration("WelcomeMail", format!("mail-{customer}"), customer.clone());
    ctx.schedule_orchestration_typed("Statistics", "statistics", &vec![1, 2, 3]);
    ctx.schedule_orchestration_versioned("Audit", Some("1.0.0".into()), "audit", customer.clone());
    Ok(format!("{customer} is signed up"))
}

async fn welcome_mail(_ctx: OrchestrationContext, customer: String) -> Result<String, String> {
    Ok(format!("wrote to {customer}"))
}

async fn statistics(_ctx: OrchestrationContext, numbers: Vec<u32>) -> Result<u32, String> {
    Ok(numbers.iter().sum())
}

async fn audit(ctx: OrchestrationContext, customer: String) -> Result<String, String> {
    Ok(format!("audited {customer} with v{}", ctx.orchestration_version()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let orchestrations = OrchestrationRegistry::builder()
        .register("SignUp", sign_up)
        .register("WelcomeMail", welcome_mail)
        .register_typed("Statistics", statistics)
        .register_versioned("Audit", "1.0.0", audit)
        .register_versioned("Audit", "2.0.0", audit)
        .build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await;

    let client = Client::new(store);
    client.start_orchestration("sign-up", "SignUp", "Ada").await?;
    for instance in ["sign-up", "mail-Ada", "statistics", "audit"] {
        let output: String = client.wait_for_orchestration_typed(instance, Duration::from_secs(30)).await??;
        println!("{instance}: {output}");
    }

    runtime.shutdown(None).await;
    Ok(())
}
