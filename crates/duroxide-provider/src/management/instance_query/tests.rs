//! Tests of the criteria and page sizes of an instance query.

use super::*;

fn order() -> InstanceInfo {
    InstanceInfo {
        instance_id: "order-7".to_owned(),
        orchestration_name: "Order".to_owned(),
        orchestration_version: "1.2.0".to_owned(),
        current_execution_id: 1,
        status: "Running".to_owned(),
        output: None,
        created_at: 100,
        updated_at: 200,
        parent_instance_id: None,
    }
}

fn child() -> InstanceInfo {
    InstanceInfo { parent_instance_id: Some("batch".to_owned()), ..order() }
}

#[test]
fn each_criterion_can_turn_an_instance_away() {
    let all = InstanceQuery::default;
    assert!(all().matches(&order()) && all().matches(&child()));
    let fits = [
        all().status("Running"),
        all().orchestration_name("Order"),
        all().orchestration_version("1.2.0"),
        all().id_prefix("order-").id_prefix("order-7"),
        all().id_prefix(""),
        all().roots_only(),
        all().created_from(100).created_before(101),
        all().updated_from(200).updated_before(201),
    ];
    for query in fits {
        assert!(query.matches(&order()), "{query:?}");
    }
    let differs = [
        all().status("running"),
        all().orchestration_name("Orders"),
        all().orchestration_version("1.2"),
        all().id_prefix("rder"),
        all().parent("batch"),
        all().created_from(101),
        all().created_before(100),
        all().updated_from(201),
        all().updated_before(200),
        all().status("Running").id_prefix("invoice-"),
    ];
    for query in differs {
        assert!(!query.matches(&order()), "{query:?}");
    }
    assert!(all().parent("batch").matches(&child()));
    assert!(!all().parent("other").matches(&child()) && !all().roots_only().matches(&child()));
}

#[test]
fn a_page_is_never_empty_and_never_large() {
    let size = |limit| InstanceQuery { limit, ..InstanceQuery::default() }.page_size();
    assert_eq!(size(None), 100);
    assert_eq!(
        [Some(0), Some(1), Some(1_000), Some(1_001), Some(u32::MAX)].map(size),
        [1, 1, 1_000, 1_000, 1_000]
    );
}
