//! The management reads of an idle store, compared with its content and with each other.

use std::collections::BTreeSet;

use duroxide::{InstanceInfo, InstanceQuery, PruneOptions};

use crate::world::World;

impl World {
    pub async fn assert_views_agree(&mut self) {
        let snapshot = self.store.snapshot().await;
        let all = self.pages(&InstanceQuery::default()).await;
        let ids: Vec<_> = all.iter().map(|info| info.instance_id.clone()).collect();
        assert_eq!(ids, self.client.list_all_instances().await.unwrap(), "{}", self.story());
        let stored: BTreeSet<_> =
            snapshot.instances.iter().map(|instance| instance.instance.clone()).collect();
        assert_eq!(ids.iter().cloned().collect::<BTreeSet<_>>(), stored, "{}", self.story());
        assert_eq!(ids.len(), stored.len(), "no instance is listed twice\n{}", self.story());
        self.assert_queries_agree(&all).await;
        self.assert_counts_agree(&all).await;
        for info in &all {
            self.assert_instance_agrees(info).await;
        }
    }

    /// All pages of a query.
    async fn pages(&self, query: &InstanceQuery) -> Vec<InstanceInfo> {
        let mut found = Vec::new();
        let mut query = query.clone().limit(3);
        loop {
            let page = self.client.query_instances(&query).await.unwrap();
            found.extend(page.instances);
            match page.next {
                Some(next) => query = query.after(next),
                None => return found,
            }
        }
    }

    /// Every query returns exactly the matching instances, in the order of the whole list.
    async fn assert_queries_agree(&self, all: &[InstanceInfo]) {
        let query = InstanceQuery::default;
        let some_time = all.get(all.len() / 2).map_or(0, |info| info.created_at);
        for query in [
            query().status("Completed"),
            query().status("Failed").roots_only(),
            query().orchestration_name("Script").orchestration_version("1.0.0"),
            query().orchestration_name("Script").status("Failed"),
            query().orchestration_name("Nobody"),
            query().id_prefix("i-1"),
            query().parent("i-1"),
            query().created_from(some_time),
            query().created_before(some_time).orchestration_name("Script"),
            query().updated_from(some_time).status("Completed"),
        ] {
            let found: Vec<_> = self.pages(&query).await.into_iter().map(|info| info.instance_id).collect();
            let expected: Vec<_> =
                all.iter().filter(|info| query.matches(info)).map(|info| info.instance_id.clone()).collect();
            assert_eq!(found, expected, "{query:?}\n{}", self.story());
        }
    }

    async fn assert_counts_agree(&self, all: &[InstanceInfo]) {
        let metrics = self.client.get_system_metrics().await.unwrap();
        let of = |status: &str| all.iter().filter(|info| info.status == status).count() as u64;
        assert_eq!(metrics.total_instances, all.len() as u64, "{}", self.story());
        assert_eq!((metrics.running_instances, of("Running")), (0, 0), "{}", self.story());
        assert_eq!(metrics.completed_instances, of("Completed"), "{}", self.story());
        assert_eq!(metrics.failed_instances, of("Failed"), "{}", self.story());
        let depths = self.client.get_queue_depths().await.unwrap();
        assert_eq!((depths.orchestrator_queue, depths.worker_queue), (0, 0), "{}", self.story());
        assert!(self.client.get_running_duroxide_version_spread().await.unwrap().is_empty());
    }

    async fn assert_instance_agrees(&self, info: &InstanceInfo) {
        let id = info.instance_id.as_str();
        let executions = self.client.list_executions(id).await.unwrap();
        assert_eq!(executions.last(), Some(&info.current_execution_id), "{id}\n{}", self.story());
        let execution = self.client.get_execution_info(id, info.current_execution_id).await.unwrap();
        assert_eq!(
            (&execution.status, &execution.output),
            (&info.status, &info.output),
            "{id}\n{}",
            self.story()
        );
        let history = self.client.read_execution_history(id, info.current_execution_id).await.unwrap();
        assert_eq!(history.len(), execution.event_count, "{id}\n{}", self.story());
        let stats = self.client.get_orchestration_stats(id).await.unwrap().expect("it exists");
        assert_eq!(stats.history_event_count, history.len() as u64, "{id}\n{}", self.story());
        let values = self.client.get_kv_all_values(id).await.unwrap();
        assert_eq!(stats.kv_user_key_count, values.len() as u64, "{id}\n{}", self.story());
        let tree = self.client.get_instance_tree(id).await.unwrap();
        assert!(tree.all_ids.iter().any(|member| member == id), "{tree:?}\n{}", self.story());
        let pruned = self.client.prune_executions(id, PruneOptions::default()).await.unwrap();
        assert_eq!(pruned.executions_deleted + 1, executions.len() as u64, "{id}\n{}", self.story());
        assert_eq!(values, self.client.get_kv_all_values(id).await.unwrap(), "11.5: {id}\n{}", self.story());
    }
}
