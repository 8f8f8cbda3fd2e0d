//! Management calls, and the texts of errors.

use duroxide_provider::ProviderError;

use super::*;
use crate::client::management::delete_error;

#[tokio::test]
async fn a_store_without_management_says_so() {
    let client = client_on(&FakeStore::telling());
    assert!(!client.has_management_capability());
    let error = client.list_all_instances().await.unwrap_err();
    assert!(matches!(error, ClientError::ManagementNotAvailable));
    assert_eq!(
        error.to_string(),
        "Management features not available - provider doesn't implement ProviderAdmin"
    );
    assert!(client.get_orchestration_stats("order").await.unwrap().is_none(), "not a management call");
}

#[test]
fn a_refused_delete_says_why() {
    let refused =
        |text: &str| delete_error(ProviderError::permanent("delete_instance", text), "o").to_string();
    assert_eq!(refused("Instance o not found"), "Instance o not found");
    assert_eq!(
        refused("Instance o is still running. Use force=true to delete anyway, or cancel first."),
        "Instance o is still running. Use force=true or cancel first."
    );
    for text in ["Cannot delete SUB-ORCHESTRATION o directly", "please delete the root"] {
        assert_eq!(
            refused(text),
            "Cannot delete sub-orchestration o directly. Delete the root orchestration instead."
        );
    }
    assert_eq!(refused("disk full"), "delete_instance: disk full");
}

#[test]
fn errors_say_whether_to_try_again() {
    let busy: ClientError = ProviderError::retryable("read", "busy").into();
    assert!(busy.is_retryable() && ClientError::Timeout.is_retryable());
    assert_eq!(
        (busy.to_string().as_str(), ClientError::Timeout.to_string().as_str()),
        ("read: busy", "Operation timed out")
    );
    let for_good = [
        ClientError::Provider(ProviderError::permanent("read", "corrupt")),
        ClientError::ManagementNotAvailable,
        ClientError::invalid_input("x"),
        ClientError::InstanceStillRunning { instance_id: "o".to_owned() },
        ClientError::CannotDeleteSubOrchestration { instance_id: "o".to_owned() },
        ClientError::InstanceNotFound { instance_id: "o".to_owned() },
    ];
    assert!(for_good.iter().all(|error| !error.is_retryable()));
    assert_eq!(ClientError::invalid_input("no id").to_string(), "Invalid input: no id");
}
