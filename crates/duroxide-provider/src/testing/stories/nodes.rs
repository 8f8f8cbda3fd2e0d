//! Nodes: the locks of a node are released when it has ended, and only then.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    ClaimToken, HandlerCapability, Losses, NodeId, ScheduledActivityIdentifier, SessionFetchConfig,
    TagFilter,
    store::{ActivityFetch, Answer, HeldBack, InstanceFetch, NodeRow, Op, bounds::NODE_FORGOTTEN_AFTER},
    testing::{
        Scenario, Turn,
        items::*,
        scenario::{LEASE, batch_fetch, work_fetch},
    },
};

fn row(name: &str) -> NodeRow {
    NodeRow {
        name: name.to_owned(),
        session_owners: vec![format!("{name}-1"), format!("{name}-2")],
        capability: "{}".to_owned(),
    }
}

fn join(s: &mut Scenario, name: &str) -> NodeId {
    match s.apply(&Op::JoinNode(row(name))).unwrap() {
        Answer::Joined(node) => node,
        other => panic!("unexpected answer {other:?}"),
    }
}

fn end(s: &mut Scenario, name: &str) {
    s.apply(&Op::EndNode { name: name.to_owned(), blamed: None }).unwrap();
}

fn end_by(s: &mut Scenario, name: &str, blamed: ClaimToken) {
    s.apply(&Op::EndNode { name: name.to_owned(), blamed: Some(blamed) }).unwrap();
}

fn renew(s: &mut Scenario, name: &str) {
    let node = s.read().nodes().unwrap().into_iter().find(|node| node.name == name).unwrap().id;
    renew_as(s, node, name);
}

fn renew_as(s: &mut Scenario, node: NodeId, name: &str) {
    s.apply(&Op::RenewNodes { nodes: vec![(node, row(name))] }).unwrap();
}

fn names(s: &mut Scenario) -> Vec<String> {
    s.read().nodes().unwrap().into_iter().map(|node| node.name).collect()
}

fn turns_of(node: NodeId, max: usize) -> InstanceFetch {
    InstanceFetch { node: Some(node), ..batch_fetch(max) }
}

fn work_of(node: NodeId, max: usize) -> ActivityFetch {
    ActivityFetch { node: Some(node), ..work_fetch(max) }
}

fn losses(lost: u32, blamed: u32) -> Option<Losses> {
    Some(Losses { lost, blamed })
}

/// S1.33: a lost claim is counted apart from one that was given back, which ended no process.
pub fn lost_claims_are_counted_apart_from_abandoned_ones(mut s: Scenario) {
    s.send(&start("a"));
    s.send(&activity("c", 1));
    for _ in 0..3 {
        let (turn, work) = (s.claim().unwrap(), s.work().unwrap());
        assert_eq!((turn.losses, work.losses), (losses(0, 0), losses(0, 0)));
        s.abandon(&turn, None, false).unwrap();
        s.abandon_work(&work, None, false).unwrap();
    }
    for lost in 0..2 {
        let (turn, work) = (s.claim().unwrap(), s.work().unwrap());
        assert_eq!((turn.losses, work.losses), (losses(lost, 0), losses(lost, 0)));
        assert_eq!((turn.attempt_count, work.attempt_count), (lost + 4, lost + 4));
        s.pass_lease();
    }
    let (turn, work) = (s.claim().unwrap(), s.work().unwrap());
    assert_eq!((turn.losses, work.losses), (losses(2, 0), losses(2, 0)));
    s.commit(&turn, Turn::first("a")).unwrap();
    s.send(&raise("a", "go"));
    assert_eq!(s.claim().unwrap().losses, losses(0, 0), "a turn that was committed did not kill");
}

/// S1.33: no claim waits for its lease after a crash that cannot be blamed on one claim.
pub fn claims_of_a_dead_node_are_ready_at_once_each_time(mut s: Scenario) {
    s.send(&start("a"));
    s.send(&activity("c", 1));
    for lost in 0..4 {
        let name = format!("node {lost}");
        let node = join(&mut s, &name);
        let turn = s.claim_all(&turns_of(node, 5)).items.pop().unwrap();
        let work = s.work_all(&work_of(node, 5)).items.pop().unwrap();
        assert_eq!((turn.losses, turn.attempt_count), (losses(lost, 0), lost + 1));
        assert_eq!((work.losses, work.attempt_count), (losses(lost, 0), lost + 1));
        end(&mut s, &name);
    }
}

/// S1.33, S1.36: the claim that ended its node rests until its lease ends. The other claims go first, and get their
/// attempt back.
pub fn the_claim_that_ended_its_node_is_charged_alone(mut s: Scenario) {
    let node = join(&mut s, "node");
    for id in ["a", "b"] {
        s.send(&start(id));
        s.send(&activity(id, 1));
    }
    let turns = s.claim_all(&turns_of(node, 5)).items;
    let works = s.work_all(&work_of(node, 5)).items;
    assert_eq!((turns.len(), works.len()), (2, 2));
    end_by(&mut s, "node", ClaimToken::Activity(works[0].lock_token.clone()));

    let free = s.claim_all(&batch_fetch(5)).items;
    let counts: Vec<_> = free.iter().map(|claim| (claim.attempt_count, claim.losses)).collect();
    assert_eq!(counts, [(1, losses(1, 0)), (1, losses(1, 0))], "it may have been another, so it is a loss");
    let free = s.work_all(&work_fetch(5)).items;
    assert_eq!(free.len(), 1);
    assert_eq!((&free[0].item, free[0].attempt_count), (&works[1].item, 1));
    s.pass_lease();
    let mut late = s.work_all(&work_fetch(5)).items;
    late.retain(|work| work.item == works[0].item);
    assert_eq!((late[0].attempt_count, late[0].losses), (2, losses(1, 1)));
}

/// S1.33: a claim that ends its node a second time is to blame. From then on no other claim counts a loss.
pub fn other_claims_of_a_node_are_not_charged_once_the_crashing_one_is_known(mut s: Scenario) {
    s.send(&start("crashing"));
    for (name, blamed) in [("first", 0), ("second", 1), ("third", 2)] {
        let node = join(&mut s, name);
        let id = format!("beside {name}");
        s.send(&start(&id));
        s.send(&activity(&id, 1));
        let turns = s.claim_all(&turns_of(node, 9)).items;
        assert_eq!(s.work_all(&work_of(node, 9)).items.len(), 1);
        let crashing = turns.iter().find(|claim| claim.instance == "crashing").unwrap();
        assert_eq!((crashing.losses, crashing.attempt_count), (losses(blamed, blamed), blamed + 1));
        end_by(&mut s, name, ClaimToken::Instance(crashing.lock_token.clone()));

        let bystander = s.claim_all(&batch_fetch(9)).items.pop().unwrap();
        let work = s.work().unwrap();
        let expected = losses(u32::from(blamed == 0), 0);
        assert_eq!((bystander.attempt_count, bystander.losses), (1, expected));
        assert_eq!((work.attempt_count, work.losses), (1, expected));
        s.commit(&bystander, Turn::first(&id)).unwrap();
        s.ack(&work, None).unwrap();
        s.pass_lease();
    }
}

/// A note that names no claim of the node proves nothing: the attempts stay counted.
pub fn a_node_that_ended_by_an_unknown_claim_leaves_all_counted(mut s: Scenario) {
    let (node, other) = (join(&mut s, "node"), join(&mut s, "other"));
    s.send(&start("a"));
    s.send(&activity("c", 1));
    s.send(&activity("c", 2));
    s.claim_all(&turns_of(node, 1)).items.pop().unwrap();
    s.work_all(&work_of(node, 1)).items.pop().unwrap();
    let elsewhere = s.work_all(&work_of(other, 1)).items.pop().unwrap();
    end_by(&mut s, "node", ClaimToken::Activity(elsewhere.lock_token.clone()));
    let turn = s.claim().unwrap();
    assert_eq!((turn.attempt_count, turn.losses), (2, losses(1, 0)));
    assert_eq!(s.work().unwrap().attempt_count, 2);
    s.ack(&elsewhere, None).unwrap();
}

/// D10
pub fn locks_of_a_dead_node_end_and_count_an_attempt(mut s: Scenario) {
    let (dead, other) = (join(&mut s, "dead"), join(&mut s, "other"));
    s.send(&start("a"));
    s.send(&start("b"));
    s.send(&activity("c", 1));
    s.send(&activity("c", 2));
    let lost = s.claim_all(&turns_of(dead, 1)).items.pop().unwrap();
    let kept = s.claim_all(&turns_of(other, 1)).items.pop().unwrap();
    let lost_work = s.work_all(&work_of(dead, 1)).items.pop().unwrap();
    let kept_work = s.work_all(&work_of(other, 1)).items.pop().unwrap();
    end(&mut s, "dead");

    let again = s.claim_all(&turns_of(other, 5)).items;
    assert_eq!(again.len(), 1, "the other node keeps its leases");
    assert_eq!((again[0].instance.as_str(), again[0].attempt_count), ("a", 2));
    let work_again = s.work_all(&work_of(other, 5)).items;
    assert_eq!(work_again.len(), 1);
    assert_eq!((&work_again[0].item, work_again[0].attempt_count), (&activity("c", 1), 2));

    assert!(s.commit(&lost, Turn::first("a")).is_err(), "I09: whoever comes back is fenced");
    assert!(s.ack(&lost_work, None).is_err());
    s.commit(&kept, Turn::first("b")).unwrap();
    s.ack(&kept_work, None).unwrap();
}

/// D5: a crash counts an attempt for everything that was claimed, and may be due to it.
pub fn claims_of_a_dead_node_may_be_poison(mut s: Scenario) {
    let dead = join(&mut s, "dead");
    s.send(&start("a"));
    s.claim_all(&turns_of(dead, 1)).items.pop().unwrap();
    end(&mut s, "dead");
    assert!(s.claim_all(&InstanceFetch { free_slots: 0, ..batch_fetch(1) }).items.is_empty());
    assert!(s.claim().is_some());
}

/// Items that were committed, given back or lost before do not belong to a dead node any more.
pub fn only_live_leases_end_with_a_node(mut s: Scenario) {
    let dead = join(&mut s, "dead");
    for id in ["a", "b", "c"] {
        s.send(&start(id));
    }
    let claims = s.claim_all(&turns_of(dead, 3)).items;
    s.commit(&claims[0], Turn::first("a").complete("done")).unwrap();
    s.abandon(&claims[1], Some(Duration::from_secs(5)), false).unwrap();
    s.pass(LEASE);
    let taken = s.claim_all(&batch_fetch(2)).items;
    assert_eq!(taken.len(), 2, "c is free because its lease ended, b because its time came");
    end(&mut s, "dead");
    assert!(s.claim().is_none(), "nobody takes them from a node that never joined");
    for claim in &taken {
        s.commit(claim, Turn::first(&claim.instance)).unwrap();
    }
}

/// A commit that was queued when its node was ended by mistake is served if no claim came in between.
pub fn a_commit_submitted_before_its_node_ended_is_served(mut s: Scenario) {
    let node = join(&mut s, "node");
    s.send(&start("a"));
    let claim = s.claim_all(&turns_of(node, 1)).items.pop().unwrap();
    let handed_in = s.now();
    s.pass(Duration::from_millis(1));
    end(&mut s, "node");
    let round = crate::store::PreparedRound::new(&claim.lock_token, &Turn::first("a").round()).unwrap();
    s.apply_handed_in(&Op::CommitRound(Box::new(round)), handed_in).unwrap();
    assert!(s.claim().is_none());
}

/// 13.1
pub fn the_sessions_of_a_dead_node_are_free(mut s: Scenario) {
    let dead = join(&mut s, "dead");
    s.send(&routed_activity("a", 1, None, Some("s")));
    s.send(&routed_activity("a", 2, None, Some("s")));
    s.send(&routed_activity("a", 3, None, Some("t")));
    let fetch = |owner: &str| ActivityFetch {
        session: Some(SessionFetchConfig { owner_id: owner.to_owned(), lock_timeout: LEASE }),
        ..work_of(dead, 1)
    };
    assert!(s.work_all(&fetch("dead-1")).items.pop().is_some());
    // An owner whose name survives its process keeps its session.
    let named = s.work_all(&fetch("a name of its own")).items.pop().unwrap();
    assert_eq!(named.item, routed_activity("a", 3, None, Some("t")));
    end(&mut s, "dead");
    assert_eq!(s.session_work("other").unwrap().item, routed_activity("a", 1, None, Some("s")));
    assert_eq!(s.session_work("other").unwrap().item, routed_activity("a", 2, None, Some("s")));
    assert!(s.session_work("other").is_none());
    assert_eq!(s.session_work("a name of its own").unwrap().item, named.item);
}

/// S3.48: an item that no node can take is claimed past all filters by the node that ends it.
pub fn one_instance_or_activity_can_be_claimed_past_all_filters(mut s: Scenario) {
    s.send(&start("a"));
    s.send(&start("b"));
    s.send(&routed_activity("a", 1, None, None));
    s.send(&routed_activity("a", 2, Some("gpu"), Some("s")));
    let only = |instance: &str| InstanceFetch {
        versions: Some(Vec::new()),
        only: Some(instance.to_owned()),
        ..batch_fetch(5)
    };
    let claimed: Vec<_> = s.claim_all(&only("b")).items.into_iter().map(|claim| claim.instance).collect();
    assert_eq!(claimed, ["b"]);
    assert!(s.claim_all(&only("b")).items.is_empty(), "it is locked");
    assert!(s.claim_all(&only("nobody")).items.is_empty());

    let only = |activity_id| ActivityFetch {
        tag_filter: TagFilter::None,
        only: Some(ScheduledActivityIdentifier { instance: "a".to_owned(), execution_id: 1, activity_id }),
        ..work_fetch(5)
    };
    let claimed: Vec<_> = s.work_all(&only(2)).items.into_iter().map(|claim| claim.item).collect();
    assert_eq!(claimed, [routed_activity("a", 2, Some("gpu"), Some("s"))]);
    assert!(s.work_all(&only(2)).items.is_empty());
    assert!(s.work_all(&only(9)).items.is_empty());
}

/// S3.46
pub fn a_claim_counts_items_it_has_no_handler_for(mut s: Scenario) {
    for instance in ["a", "b", "c"] {
        s.send(&start(instance));
    }
    s.send(&activity("a", 1));
    s.send(&activity("a", 2));
    let nothing = |max| InstanceFetch { versions: Some(Vec::new()), ..batch_fetch(max) };
    assert_eq!(s.claim_all(&nothing(5)).held_back.version, 3, "items, not kinds");
    assert_eq!(s.claim_all(&nothing(2)).held_back.version, 2, "at most as many as were asked for");
    assert_eq!(s.claim_all(&nothing(5)).held_back.version, 3, "at every fetch");
    let handlers = HandlerCapability {
        supported_orchestrations: Some(BTreeMap::new()),
        supported_activities: Some(BTreeSet::new()),
    };
    let unknown = InstanceFetch { handlers: Some(handlers.clone()), ..batch_fetch(5) };
    assert_eq!(s.claim_all(&unknown).held_back.orchestration, 3);
    let unknown = |max| ActivityFetch { handlers: Some(handlers.clone()), ..work_fetch(max) };
    assert_eq!(s.work_all(&unknown(5)).held_back.activity, 2);
    assert_eq!(s.work_all(&unknown(1)).held_back.activity, 1);
    assert_eq!(s.claim_all(&batch_fetch(5)).held_back, HeldBack::default());
}

/// D10: one table lists the nodes.
pub fn nodes_are_listed_until_they_end(mut s: Scenario) {
    let first = join(&mut s, "first");
    let second = join(&mut s, "second");
    assert!(first < second);
    assert_eq!(join(&mut s, "first"), first, "the same node again");
    assert_eq!(names(&mut s), ["first", "second"]);
    end(&mut s, "first");
    end(&mut s, "nobody");
    assert_eq!(names(&mut s), ["second"]);
    assert!(join(&mut s, "third") > second, "a number is never used again");
}

/// A row without a process, such as that of a copied file, does not stay for ever.
pub fn a_node_without_heartbeats_is_forgotten(mut s: Scenario) {
    join(&mut s, "quiet");
    join(&mut s, "busy");
    s.pass(NODE_FORGOTTEN_AFTER - Duration::from_secs(1));
    renew(&mut s, "busy");
    assert_eq!(names(&mut s), ["quiet", "busy"]);
    let seen = s.read().nodes().unwrap().into_iter().map(|node| node.seen_at).max();
    assert_eq!(seen, Some(s.now()));
    s.pass(Duration::from_secs(1));
    renew(&mut s, "busy");
    assert_eq!(names(&mut s), ["busy"]);
}

/// D10: a node that was ended by mistake gets its row and number again, so that its claims end with it.
pub fn a_node_that_was_ended_by_mistake_gets_its_number_again(mut s: Scenario) {
    let cut_off = join(&mut s, "cut off");
    let other = join(&mut s, "other");
    s.send(&start("a"));
    s.send(&start("b"));
    s.send(&routed_activity("a", 1, None, Some("s")));
    end(&mut s, "cut off");
    // The node does not notice, and goes on.
    assert_eq!(s.claim_all(&turns_of(cut_off, 1)).items.len(), 1);
    renew_as(&mut s, cut_off, "cut off");
    assert_eq!(names(&mut s), ["cut off", "other"]);
    assert!(join(&mut s, "third") > other, "a number is never used again");
    assert_eq!(s.claim_all(&turns_of(cut_off, 1)).items.len(), 1);
    let session = SessionFetchConfig { owner_id: "cut off-1".to_owned(), lock_timeout: LEASE };
    let fetch = ActivityFetch { session: Some(session), ..work_of(cut_off, 1) };
    assert_eq!(s.work_all(&fetch).items.len(), 1);

    end(&mut s, "cut off");
    assert_eq!(s.claim_all(&turns_of(other, 5)).items.len(), 2, "what it claimed before and after is free");
    assert!(s.session_work("other-1").is_some(), "and so are its sessions");
    renew_as(&mut s, other, "other");
    assert_eq!(names(&mut s), ["other", "third"], "a renewal of one node restores no other");
}

/// D11: nodes are no less there because the clock was set.
pub fn a_clock_set_forward_makes_no_node_forgotten(mut s: Scenario) {
    join(&mut s, "quiet");
    join(&mut s, "busy");
    s.pass(Duration::from_secs(5));
    s.notice_turn_forward(NODE_FORGOTTEN_AFTER * 2);
    renew(&mut s, "busy");
    assert_eq!(names(&mut s), ["quiet", "busy"]);
    let seen: Vec<_> = s.read().nodes().unwrap().into_iter().map(|node| node.seen_at).collect();
    assert_eq!(s.now().saturating_since(seen[0]), Duration::from_secs(5));
}
