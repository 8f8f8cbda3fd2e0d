/// What orchestration code sees of its execution.
#[derive(Debug, Clone)]
pub struct OrchestrationContext {}
