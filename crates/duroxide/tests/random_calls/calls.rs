//! Every call there is, made at random.

use std::time::Duration;

use duroxide::{ClientError, InstanceFilter, InstanceQuery, PruneOptions};

use crate::{script::script, world::World};

/// Ids are few, so that calls meet.
const INSTANCES: u64 = 6;

impl World {
    pub async fn any_call(&mut self) {
        match self.luck.below(12) {
            0..4 => self.start().await,
            4..8 => self.signal().await,
            8 => self.come_or_go().await,
            9 => self.look().await,
            10 => self.list().await,
            _ => self.change().await,
        }
    }

    /// An id that is used, or sometimes that of one of its children or an unknown one.
    fn instance(&mut self) -> String {
        let root = format!("i-{}", self.luck.below(INSTANCES));
        match self.luck.below(10) {
            0 => format!("{root}::sub::2"),
            1 => format!("{root}-c"),
            2 => format!("{root}-d"),
            _ => root,
        }
    }

    async fn start(&mut self) {
        let (root, script) = (format!("i-{}", self.luck.below(INSTANCES)), script(&mut self.luck));
        self.note(format!("start {root} {script}"));
        let client = &self.client;
        let started = match self.luck.below(4) {
            0 => client.start_orchestration_versioned(root, "Script", "1.0.0", script).await,
            1 => client.start_orchestration_typed(root, "Script", script).await,
            2 => client.start_orchestration_versioned_typed(root, "Script", "2.0.0", script).await,
            _ => client.start_orchestration(root, "Script", script).await,
        };
        self.expect(started);
    }

    async fn signal(&mut self) {
        let instance = self.instance();
        self.sent += 1;
        let (number, kind) = (self.sent, self.luck.below(9));
        self.note(format!("signal {kind} to {instance}: {number}"));
        let client = &self.client;
        let sent = match kind {
            0 => client.raise_event(instance, "event", "plain").await,
            1 => client.raise_event_typed(instance, "event", &number).await,
            2 | 3 => client.enqueue_event(instance, "queue", number.to_string()).await,
            4 | 5 => client.enqueue_event_typed(instance, "queue", &number).await,
            6 => client.cancel_instance(instance, "changed my mind").await,
            _ => client.raise_event(instance, "nobody waits for this", "").await,
        };
        self.expect(sent);
    }

    /// Nodes come, go in an orderly way, and are aborted.
    async fn come_or_go(&mut self) {
        let kind = self.luck.below(6);
        self.note(format!("runtime {kind}"));
        match kind {
            0 => self.stop_runtime(Some(0)).await,
            1 => self.stop_runtime(Some(1)).await,
            2 => self.stop_runtime(None).await,
            _ => self.start_runtime().await,
        }
        if kind > 3 {
            tokio::time::sleep(Duration::from_millis(self.luck.below(10))).await;
        }
    }

    /// Looks at one instance.
    async fn look(&mut self) {
        let (instance, kind) = (self.instance(), self.luck.below(12));
        self.note(format!("look {kind} at {instance}"));
        let (client, id) = (&self.client, instance.as_str());
        let short = Duration::from_millis(2);
        let seen: Result<(), ClientError> = match kind {
            0 => client.get_orchestration_status(id).await.map(drop),
            1 => client.wait_for_orchestration(id, short).await.map(drop),
            2 => client.wait_for_orchestration_typed::<String>(id, short).await.map(drop),
            3 => client.wait_for_status_change(id, self.luck.below(3), short, short).await.map(drop),
            4 => client.get_kv_value(id, "key-0").await.map(drop),
            5 => client.get_kv_all_values(id).await.map(drop),
            6 => client.wait_for_kv_value(id, "key-1", short).await.map(drop),
            7 => client.get_orchestration_stats(id).await.map(drop),
            8 => client.get_instance_info(id).await.map(drop),
            9 => client.get_execution_info(id, 1).await.map(drop),
            10 => client.read_execution_history(id, 1 + self.luck.below(2)).await.map(drop),
            _ => client.get_instance_tree(id).await.map(drop),
        };
        self.expect(seen);
    }

    /// Looks at all of them.
    async fn list(&mut self) {
        let kind = self.luck.below(9);
        self.note(format!("list {kind}"));
        let client = &self.client;
        let query = InstanceQuery::default().limit(1 + self.luck.below(4) as u32);
        let seen = match kind {
            0 => client.list_all_instances().await.map(drop),
            1 => client.list_instances_by_status("Running").await.map(drop),
            2 => client.get_system_metrics().await.map(drop),
            3 => client.get_queue_depths().await.map(drop),
            4 => client.get_running_duroxide_version_spread().await.map(drop),
            5 => client.list_dead_letters(Some(3)).await.map(drop),
            6 => client.query_instances(&query.status("Failed")).await.map(drop),
            7 => client.query_instances(&query.orchestration_name("Script").id_prefix("i-1")).await.map(drop),
            _ => client.query_instances(&query.roots_only().orchestration_version("2.0.0")).await.map(drop),
        };
        self.expect(seen);
    }

    /// Deletes, prunes, and deals with dead letters.
    async fn change(&mut self) {
        let (instance, kind) = (self.instance(), self.luck.below(8));
        self.note(format!("change {kind} {instance}"));
        let (client, id) = (&self.client, instance.as_str());
        let some = InstanceFilter { limit: Some(2), ..InstanceFilter::default() };
        let prune =
            PruneOptions { keep_last: Some(1 + self.luck.below(2) as u32), ..PruneOptions::default() };
        let done = match kind {
            0 => client.delete_instance(id, false).await.map(drop),
            1 => client.delete_instance(id, true).await.map(drop),
            2 => client.delete_instance_bulk(some).await.map(drop),
            3 => client.prune_executions(id, prune).await.map(drop),
            4 => client.prune_executions_bulk(some, prune).await.map(drop),
            5 => client.list_executions(id).await.map(drop),
            _ => match client.list_dead_letters(Some(1)).await.unwrap().first() {
                None => Ok(()),
                Some(letter) if kind == 6 => client.retry_dead_letter(&letter.id).await,
                Some(letter) => client.discard_dead_letter(&letter.id).await,
            },
        };
        self.expect(done);
    }

    /// Calls succeed, or fail with a typed error for a wrong call.
    #[track_caller]
    fn expect(&self, result: Result<(), ClientError>) {
        match result {
            Ok(()) | Err(ClientError::Timeout) => {}
            Err(
                ClientError::InstanceNotFound { .. }
                | ClientError::InstanceStillRunning { .. }
                | ClientError::CannotDeleteSubOrchestration { .. },
            ) => {}
            Err(ClientError::Provider(error)) if error.message.contains("not found") => {}
            // It got a child between the read of its tree and the delete.
            Err(ClientError::Provider(error)) if error.message.contains("created after tree traversal") => {}
            Err(error) => panic!("{error}\n{}", self.story()),
        }
    }
}
