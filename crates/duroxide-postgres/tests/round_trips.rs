//! A batch takes two round trips, at most three, however many operations it holds. Only dead letters, deleting and pruning take more.
//!
//! Every tour is made once in each size to prepare its statements, which costs a round trip each first time on a connection,
//! and is counted after that.
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod fixture;
#[path = "round_trips/management.rs"]
mod management;
#[path = "round_trips/turns.rs"]
mod turns;

use duroxide_provider::{
    SessionFetchConfig,
    store::{ActivityFetch, Answer, InstanceFetch, NodeRow, Op},
    testing::{Turn, items, scenario},
};
use fixture::{Node, ack, claims, commit, fresh_options, ids, send, start, works};

/// Sizes of batches that are counted.
const SIZES: [usize; 3] = [1, 7, 60];

/// Round trips of the batches of a tour, by their names.
type Counted = Vec<(&'static str, u64)>;

/// Makes a tour with batches of growing size, and checks the round trips of each batch.
fn check(at_most: u64, tour: impl Fn(&mut Node, &str, usize) -> Counted) {
    let Some(server) = postgres_server::server() else { return };
    let mut node = Node::open(&fresh_options(server), 1);
    // Small and large batches are written by different statements.
    for size in SIZES {
        tour(&mut node, &format!("warm-up-{size}"), size);
    }
    for size in SIZES {
        let counted = tour(&mut node, &format!("of-{size}"), size);
        println!("batches of {size}: {counted:?}");
        for (batch, round_trips) in counted {
            assert!(round_trips <= at_most, "{batch} with {size} operations took {round_trips} round trips");
        }
    }
}

#[test]
fn one_activity_from_start_to_end() {
    check(2, |node, prefix, size| {
        let ids = ids(prefix, size);
        let mut counted = vec![("starts", node.run(ids.iter().map(|id| start(id)).collect()).1)];
        let (claimed, trips) = node.claim(size + 5);
        assert_eq!(claimed.len(), size);
        counted.push(("claims", trips));
        let turns = claimed.iter().map(|claim| commit(claim, Turn::first(&claim.instance).activity()));
        counted.push(("commits that schedule", node.run(turns.collect()).1));
        let (work, trips) = node.work(size + 5);
        assert_eq!(work.len(), size);
        counted.push(("activity claims", trips));
        counted.push(("acks", node.run(work.iter().map(ack).collect()).1));
        let (claimed, trips) = node.claim(size + 5);
        assert_eq!(claimed.len(), size);
        counted.push(("claims of completions", trips));
        let turns =
            claimed.iter().map(|claim| commit(claim, Turn::later(claim).completed(2).complete("done")));
        let (done, trips) = node.run(turns.collect());
        for answer in done.answers {
            assert!(matches!(answer, Ok(Answer::RoundCommitted { ended: Some(_), .. })), "{answer:?}");
        }
        counted.push(("commits that complete", trips));
        counted
    });
}

/// A node does not read the rows that it wrote last: each batch is one round trip.
#[test]
fn one_activity_from_start_to_end_on_a_node_that_is_alone() {
    let Some(server) = postgres_server::server() else { return };
    let mut node = Node::open(&fresh_options(server), 1);
    node.engine = node.engine.as_only_writer();
    let mut tour = |prefix: &str, size: usize| {
        let ids = ids(prefix, size);
        let mut counted = Counted::new();
        let mut transact = |name, ops| {
            let mut batch = node.batch(ops, size + 5, size + 5);
            batch.promote = false;
            for fetch in &mut batch.activity_fetches {
                let owner_id = "me".to_owned();
                fetch.request.to_mut().session =
                    Some(SessionFetchConfig { owner_id, lock_timeout: scenario::LEASE });
            }
            let (done, trips) = node.transact(&batch);
            counted.push((name, trips));
            done
        };
        // The first batch reads ready rows.
        transact("a look", Vec::new());
        let claimed = claims(transact("starts", ids.iter().map(|id| start(id)).collect()));
        assert_eq!(claimed.len(), size);
        let turns = claimed.iter().map(|claim| commit(claim, Turn::first(&claim.instance).activity()));
        let work = works(transact("commits that schedule", turns.collect()));
        assert_eq!(work.len(), size);
        let claimed = claims(transact("acks", work.iter().map(ack).collect()));
        assert_eq!(claimed.len(), size);
        let turns =
            claimed.iter().map(|claim| commit(claim, Turn::later(claim).completed(2).complete("done")));
        transact("commits that complete", turns.collect());
        counted.split_off(1)
    };
    for size in SIZES {
        tour(&format!("warm-up-{size}"), size);
    }
    for size in SIZES {
        let counted = tour(&format!("of-{size}"), size);
        assert!(counted.iter().all(|(_, trips)| *trips == 1), "batches of {size}: {counted:?}");
    }
}

/// A claim locks and reads instances that another node has started. The node that has locked an instance does not read
/// it again.
#[test]
fn instances_started_by_another_node_are_read_once() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let (mut other, mut node) = (Node::open(&options, 1), Node::open(&options, 2));
    let mut tour = |prefix: &str, size: usize| {
        other.run(ids(prefix, size).iter().map(|id| start(id)).collect());
        let (claimed, trips) = node.claim(size + 5);
        assert_eq!(claimed.len(), size);
        let mut counted = vec![("claims", trips)];
        let turns = claimed.iter().map(|claim| commit(claim, Turn::first(&claim.instance).complete("done")));
        let mut batch = node.batch(turns.collect(), 0, 0);
        batch.promote = false;
        counted.push(("commits", node.transact(&batch).1));
        counted
    };
    for size in SIZES {
        tour(&format!("warm-up-{size}"), size);
    }
    for size in SIZES {
        assert_eq!(tour(&format!("of-{size}"), size), [("claims", 2), ("commits", 1)], "batches of {size}");
    }
}

/// An instance that waits is woken by one statement, also by a node that has not cached it. If it does not wait, the event
/// takes the general path, and so do the next ones: a try costs a round trip.
#[test]
fn an_event_of_a_node_that_runs_nothing() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let (mut node, mut sender) = (Node::open(&options, 1), Node::open(&options, 2));
    let mut woken = Vec::new();
    // The first transaction reads the intake, the second prepares the statement.
    for (id, at_most) in [("first", u64::MAX), ("second", 2), ("third", 1)] {
        node.run(vec![start(id)]);
        let claimed = node.claim(1).0.remove(0);
        node.run(vec![commit(&claimed, Turn::first(id))]);
        assert!(sender.raise(id) <= at_most, "{id}");
        woken = node.claim(2).0;
        assert_eq!(woken.iter().map(|claim| claim.messages.len()).collect::<Vec<_>>(), [1]);
    }
    // The instance is locked: the first event finds that out and leaves it in the row cache, and the second does not try. One
    // round trip of the first prepares the statement that writes.
    assert_eq!(sender.raise("third"), 4);
    assert_eq!(sender.raise("third"), 1);
    let claimed = woken.remove(0);
    node.run(vec![commit(&claimed, Turn::later(&claimed))]);
    assert_eq!(node.claim(2).0[0].messages.len(), 2);
}

/// Each transaction that makes work also claims it.
#[test]
fn operations_and_fetches_in_one_batch() {
    check(2, |node, prefix, size| {
        let ids = ids(prefix, size);
        let mut counted = Counted::new();
        let batch = node.batch(ids.iter().map(|id| start(id)).collect(), size, size);
        let (done, trips) = node.transact(&batch);
        let claimed = claims(done);
        assert_eq!(claimed.len(), size);
        counted.push(("starts and claims", trips));
        let turns = claimed.iter().map(|claim| commit(claim, Turn::first(&claim.instance).activity()));
        let batch = node.batch(turns.collect(), size, size);
        let (done, trips) = node.transact(&batch);
        let work = works(done);
        assert_eq!(work.len(), size);
        counted.push(("commits and claims", trips));
        let batch = node.batch(work.iter().map(ack).collect(), size, size);
        let (done, trips) = node.transact(&batch);
        let claimed = claims(done);
        assert_eq!(claimed.len(), size);
        counted.push(("acks and claims", trips));
        let turns =
            claimed.iter().map(|claim| commit(claim, Turn::later(claim).completed(2).complete("done")));
        let batch = node.batch(turns.collect(), size, size);
        counted.push(("ends and claims", node.transact(&batch).1));
        counted
    });
}

#[test]
fn timers_children_values_and_cancellations() {
    check(2, |node, prefix, size| {
        let ids = ids(prefix, size);
        let mut counted = Counted::new();
        let batch = node.batch(ids.iter().map(|id| start(id)).collect(), size, 0);
        let claimed = claims(node.transact(&batch).0);
        let turns = claimed.iter().map(|claim| {
            let turn = Turn::first(&claim.instance).activity().child("sub::3");
            commit(claim, turn.set("key", "value").status(Some("busy")))
        });
        counted.push(("rounds with everything", node.run(turns.collect()).1));
        let (children, trips) = node.claim(size);
        assert_eq!(children.len(), size);
        counted.push(("claims of children", trips));
        let ends = children.iter().map(|claim| commit(claim, Turn::first(&claim.instance).complete("done")));
        counted.push(("ends of children", node.run(ends.collect()).1));
        let batch = node.batch(ids.iter().map(|id| send(items::raise(id, "go"))).collect(), size, 0);
        let (done, trips) = node.transact(&batch);
        counted.push(("events and claims", trips));
        // Not before the round is committed: a timer that is due by then makes its instance ready, which costs a round trip more.
        let soon = node.at.as_millis() + 300;
        let turns = claims(done);
        assert_eq!(turns.len(), size);
        let turns = turns.iter().map(|claim| commit(claim, Turn::later(claim).timer(soon)));
        counted.push(("timers", node.run(turns.collect()).1));
        // The clock is the database's: it is asked again until it has passed the timers.
        let mut claimed = Vec::new();
        while claimed.len() < size {
            let mut batch = node.batch(Vec::new(), size, 0);
            batch.promote = true;
            let (done, trips) = node.transact(&batch);
            claimed.extend(claims(done));
            counted.push(("timers that fire", trips));
        }
        counted.dedup();
        let turns = claimed.iter().map(|claim| {
            let turn =
                Turn::later(claim).clear("key").status(None).cancel_activity(2).timer(u64::MAX / 4_000);
            let timer = turn.last_event_id();
            commit(claim, turn.cancel_timer(timer).complete("done"))
        });
        counted.push(("ends with cancellations", node.run(turns.collect()).1));
        assert_eq!(node.work(size).0.len(), 0, "the activities were cancelled");
        counted
    });
}

#[test]
fn messages_renewals_and_repeated_starts() {
    check(2, |node, prefix, size| {
        let ids = ids(prefix, size);
        let batch = node.batch(ids.iter().map(|id| start(id)).collect(), size, 0);
        let claimed = claims(node.transact(&batch).0);
        let mut counted = Counted::new();
        let renew = |claim: &duroxide_provider::OrchestrationClaim| Op::RenewInstance {
            token: claim.lock_token.clone(),
            extend_for: scenario::LEASE,
        };
        counted.push(("renewals", node.run(claimed.iter().map(renew).collect()).1));
        let turns = claimed.iter().map(|claim| commit(claim, Turn::first(&claim.instance)));
        node.run(turns.collect());
        let (done, trips) = node.run(ids.iter().map(|id| start(id)).collect());
        assert!(done.answers.iter().all(|answer| matches!(answer, Ok(Answer::Found(_)))));
        counted.push(("starts of what is there", trips));
        let events = ids.iter().flat_map(|id| [send(items::raise(id, "1")), send(items::queue(id, "2"))]);
        counted.push(("events", node.run(events.collect()).1));
        let (claimed, trips) = node.claim(size);
        assert!(claimed.iter().all(|claim| claim.messages.len() == 2));
        counted.push(("claims of events", trips));
        let give_up = |claim: &duroxide_provider::OrchestrationClaim| Op::AbandonInstance {
            token: claim.lock_token.clone(),
            delay: None,
            ignore_attempt: true,
        };
        counted.push(("abandons", node.run(claimed.iter().map(give_up).collect()).1));
        let claimed = node.claim(size).0;
        let turns = claimed.iter().map(|claim| commit(claim, Turn::later(claim).complete("done")));
        node.run(turns.collect());
        counted
    });
}

/// The items of a dead node, however many, go to other nodes at once, and so do its sessions: the node and its claims are
/// found, their rows are locked, and all is written.
#[test]
fn the_end_of_a_node() {
    check(3, |node, prefix, size| {
        let name = prefix.to_owned();
        let session_owners = vec![format!("{name} 1"), format!("{name} 2")];
        let row = NodeRow { name: name.clone(), session_owners, capability: "{}".to_owned() };
        let (done, _) = node.run(vec![Op::JoinNode(row)]);
        let Ok(Answer::Joined(dead)) = done.answers[0] else { unreachable!() };
        let ids = ids(prefix, size);
        node.run(ids.iter().map(|id| start(id)).collect());
        let fetch = |max| InstanceFetch { node: Some(dead), ..scenario::batch_fetch(max) };
        let claimed = node.claim_with(fetch(size));
        let turns = claimed.iter().map(|claim| commit(claim, Turn::first(&claim.instance).activity()));
        node.run(turns.collect());
        node.run(ids.iter().map(|id| send(items::raise(id, "1"))).collect());
        assert_eq!(node.claim_with(fetch(size)).len(), size);
        let fetch = ActivityFetch { node: Some(dead), ..scenario::work_fetch(size) };
        assert_eq!(node.work_with(fetch).0.len(), size);
        let counted = vec![("the end", node.run(vec![Op::EndNode { name, blamed: None }]).1)];

        let work = node.work(size + 5).0;
        assert_eq!(work.len(), size);
        node.run(work.iter().map(ack).collect());
        let turns = node.claim(size + 5).0;
        assert_eq!(turns.len(), size);
        let turns = turns.iter().map(|claim| commit(claim, Turn::later(claim).complete("done")));
        node.run(turns.collect());
        counted
    });
}

/// The life of activities in the sessions of their instances.
fn in_sessions(node: &mut Node, prefix: &str, size: usize, session_of: fn(&str) -> String) -> Counted {
    let ids = ids(prefix, size);
    let batch = node.batch(ids.iter().map(|id| start(id)).collect(), size, 0);
    let claimed = claims(node.transact(&batch).0);
    let turns = claimed.iter().map(|claim| {
        let session = session_of(&claim.instance);
        commit(claim, Turn::first(&claim.instance).routed_activity(None, Some(&session)))
    });
    let mut counted = vec![("rounds", node.run(turns.collect()).1)];
    let session = SessionFetchConfig { owner_id: "me".to_owned(), lock_timeout: scenario::LEASE };
    let mut fetch = scenario::work_fetch(size);
    fetch.session = Some(session);
    let (work, trips) = node.work_with(fetch);
    assert_eq!(work.len(), size);
    counted.push(("claims in sessions", trips));
    counted.push(("acks", node.run(work.iter().map(ack).collect()).1));
    let claimed = node.claim(size).0;
    let turns = claimed.iter().map(|claim| commit(claim, Turn::later(claim).complete("done")));
    node.run(turns.collect());
    counted
}

/// All sessions and their activities are locked at once, whether they are many or one.
#[test]
fn activities_of_sessions() {
    check(2, |node, prefix, size| in_sessions(node, prefix, size, |_| "session".to_owned()));
    check(2, |node, prefix, size| in_sessions(node, prefix, size, str::to_owned));
}
