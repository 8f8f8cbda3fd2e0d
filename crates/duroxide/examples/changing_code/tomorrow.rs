//! The code that is about to be deployed: the same change, made carelessly and carefully.

use duroxide::{ActivityContext, OrchestrationContext, typed::Handlers};

use crate::today;

#[duroxide::activity]
async fn reserve(_ctx: ActivityContext, amount: u64) -> Result<String, String> {
    Ok(format!("{amount} reserved"))
}

/// One more call, under the version of the running instances.
mod in_place {
    use super::*;

    #[duroxide::orchestration]
    pub(super) async fn order(ctx: OrchestrationContext, amount: u64) -> Result<String, String> {
        ctx.activity::<reserve>(amount).await?;
        let receipt = ctx.activity::<today::charge>(amount).await?;
        Ok(receipt)
    }
}

/// The same code as the next version, in addition to the old one.
mod as_a_version {
    use super::*;

    #[duroxide::orchestration(version = "2.0.0")]
    pub(super) async fn order(ctx: OrchestrationContext, amount: u64) -> Result<String, String> {
        ctx.activity::<reserve>(amount).await?;
        let receipt = ctx.activity::<today::charge>(amount).await?;
        Ok(receipt)
    }
}

pub(crate) fn careless() -> Handlers {
    Handlers::new().activity::<today::charge>().activity::<reserve>().orchestration::<in_place::order>()
}

pub(crate) fn careful() -> Handlers {
    today::handlers().activity::<reserve>().orchestration::<as_a_version::order>()
}
