//! Statements that find and lock ready rows.

use duroxide_core::Timestamp;
use duroxide_provider::rules::{LaneId, RouteId};

use crate::{
    connection::parameters,
    record::lock_look_micros,
    tables::load::{DATA_BYTES_MAX, Meaning, Request, given_time, instance_rows},
    value::{limit, micros, number},
};

/// The longest ready instances on each of these routes. `$1` are the routes, `$2` is how many on each, `$3` the number at
/// which the list begins. An instance that another node claims in the meantime has lost its ready number when it is
/// locked.
macro_rules! ready_instances {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM unnest($1::bigint[]) AS accepted (route) CROSS JOIN LATERAL (
                SELECT instance.* FROM {s}.ready_instance
                JOIN {s}.instance ON instance.number = ANY (ARRAY[ready_instance.instance])
                    AND instance.ready_number = ready_instance.place AND instance.route = ready_instance.route
                WHERE ready_instance.route = accepted.route AND ready_instance.place >= $3::bigint
                ORDER BY ready_instance.place LIMIT $2 FOR UPDATE OF instance SKIP LOCKED) AS instance"
        )
    };
}
/// The condition that an instance may be due. `$1` is the time; NULL: when the transaction began. Nothing is due before `$2`.
macro_rules! may_be_due {
    () => {
        concat!("instance.look_at <= ", given_time!("$1"), " AND instance.look_at >= $2::bigint")
    };
}
macro_rules! is_due {
    () => {
        concat!("coalesce(instance.wait_until <= ", given_time!("$1"), ", false)")
    };
}
/// Instances that are due.
macro_rules! due_instances {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM {s}.instance WHERE ",
            may_be_due!(),
            " AND ",
            is_due!(),
            " ORDER BY instance.look_at, instance.number FOR UPDATE SKIP LOCKED"
        )
    };
}
const READY: &str = ready_instances!("{columns instance}");
/// The instances are found once more, by a statement that began after the one that locked them: only then is certain that the
/// messages are those of the locked rows. Instances that are not in both answers are left to the next claim.
const BELONGINGS_OF_READY: &str =
    instance_rows!(ready_instances!("instance.number, instance.execution_id"), "$4", "$5::bigint");
/// Corrects `look_at` of instances that were read too early; locked ones are read again within a minute. Not a change of the
/// row, so the revision stays.
const CORRECT_LOOKS: &str = concat!(
    "UPDATE {s}.instance SET look_at = CASE WHEN lock_token IS NULL OR wait_until IS NULL THEN wait_until
        ELSE least(wait_until, ",
    given_time!("$1"),
    " + ",
    lock_look_micros!(),
    ") END FROM (SELECT instance.number FROM {s}.instance WHERE ",
    may_be_due!(),
    " AND NOT ",
    is_due!(),
    " FOR UPDATE SKIP LOCKED) AS early WHERE instance.number = ANY (ARRAY[early.number])"
);
const DUE: &str = due_instances!("{columns instance}");
const BELONGINGS_OF_DUE: &str =
    instance_rows!(due_instances!("instance.number, instance.execution_id"), "$3", "$4::bigint");
const STRAYS: &str = "SELECT {columns instance} FROM {s}.instance WHERE instance.is_stray
    ORDER BY instance.number FOR UPDATE SKIP LOCKED";
/// Counts of ready instances by route, and whether stray mailboxes exist: one row without a route if none is ready.
const ROUTE_COUNTS: &str =
    "SELECT strays.exist AS has_strays, route.id, route.definition, (SELECT count(*) FROM (SELECT 1 FROM {s}.ready_instance
        WHERE ready_instance.route = route.id AND ready_instance.place >= $2::bigint LIMIT $1) AS counted) AS ready
    FROM (SELECT EXISTS (SELECT 1 FROM {s}.instance WHERE is_stray) AS exist) AS strays
    LEFT JOIN {s}.route ON true";
const LANE_COUNTS: &str = "SELECT lane.id, lane.definition, (SELECT count(*) FROM (SELECT 1 FROM {s}.activity
        WHERE activity.lane = lane.id AND activity.wait_until IS NULL AND activity.session_id IS NULL
            AND activity.number >= $2::bigint
        LIMIT $1) AS counted) AS ready
    FROM {s}.lane";
const READY_ACTIVITIES: &str = "SELECT {columns activity} FROM unnest($1::bigint[]) AS accepted (lane)
    CROSS JOIN LATERAL (
        SELECT * FROM {s}.activity WHERE activity.lane = accepted.lane
            AND activity.wait_until IS NULL AND activity.session_id IS NULL AND activity.number >= $3::bigint
        ORDER BY activity.number LIMIT $2 FOR UPDATE SKIP LOCKED) AS activity";
const SESSION_LANES: &str = "SELECT DISTINCT session_id, lane FROM {s}.activity
    WHERE wait_until IS NULL AND session_id IS NOT NULL";
const SESSIONS_OF_READY: &str = "SELECT {columns session} FROM {s}.session
    WHERE session.id IN (SELECT activity.session_id FROM {s}.activity
        WHERE activity.wait_until IS NULL AND activity.session_id IS NOT NULL)
    ORDER BY session.id FOR UPDATE OF session";
/// Ready activities of sessions that no other owner holds. Only a forecast: the rules decide which claims may take
/// them.
const READY_IN_SESSIONS: &str = concat!(
    "SELECT {columns activity} FROM (SELECT DISTINCT session_id, lane FROM {s}.activity
        WHERE wait_until IS NULL AND session_id IS NOT NULL) AS wanted
    CROSS JOIN LATERAL (
        SELECT * FROM {s}.activity WHERE activity.session_id = wanted.session_id AND activity.lane = wanted.lane
            AND activity.wait_until IS NULL AND activity.session_id IS NOT NULL
        ORDER BY activity.number LIMIT $3 FOR UPDATE SKIP LOCKED) AS activity
    WHERE wanted.lane = ANY ($2::bigint[]) AND NOT EXISTS (SELECT 1 FROM {s}.session
        WHERE session.id = wanted.session_id AND session.owner <> ALL ($1::text[]) AND session.lock_until > ",
    given_time!("$4"),
    ")"
);
pub(super) const READY_IN_SESSION: &str = "SELECT {columns activity} FROM {s}.activity
    WHERE activity.session_id = $1 AND activity.lane = $2 AND activity.wait_until IS NULL
        AND activity.session_id IS NOT NULL
    ORDER BY activity.number LIMIT $3 FOR UPDATE SKIP LOCKED";
pub(super) const MAY_BE_READY: &str = "SELECT
    EXISTS (SELECT 1 FROM {s}.ready_instance)
        OR EXISTS (SELECT 1 FROM {s}.instance WHERE is_stray) AS instances,
    EXISTS (SELECT 1 FROM {s}.activity WHERE wait_until IS NULL AND session_id IS NULL)
        OR EXISTS (SELECT 1 FROM {s}.activity WHERE wait_until IS NULL AND session_id IS NOT NULL) AS activities";

impl Request {
    /// Locks ready instances and loads their rows.
    pub(in crate::tables) fn ready_instances(
        routes: &[RouteId],
        at_most: usize,
        from: i64,
        mailbox_max: usize,
    ) -> [Self; 2] {
        let accepted = || routes.iter().map(|route| number(route.0)).collect::<Vec<_>>();
        let messages_max = limit(mailbox_max.saturating_add(1));
        [
            Self::new(
                Meaning::ReadyInstances(routes.to_vec(), at_most),
                READY,
                parameters![accepted(), limit(at_most), from],
            ),
            Self::new(
                Meaning::InstanceRows,
                BELONGINGS_OF_READY,
                parameters![accepted(), limit(at_most), from, messages_max, DATA_BYTES_MAX],
            ),
        ]
    }

    /// Locks due instances and loads their rows.
    pub(in crate::tables) fn due_instances(
        at: Option<Timestamp>,
        from: i64,
        mailbox_max: usize,
    ) -> [Self; 3] {
        let time = at.map(micros);
        let messages_max = limit(mailbox_max.saturating_add(1));
        [
            Self::new(Meaning::Nothing, CORRECT_LOOKS, parameters![time, from]),
            Self::new(Meaning::DueInstances(at), DUE, parameters![time, from]),
            Self::new(
                Meaning::InstanceRows,
                BELONGINGS_OF_DUE,
                parameters![time, from, messages_max, DATA_BYTES_MAX],
            ),
        ]
    }

    pub(in crate::tables) fn strays() -> Self {
        Self::new(Meaning::Strays, STRAYS, Vec::new())
    }

    pub(in crate::tables) fn route_counts(at_most: usize, from: i64) -> Self {
        Self::new(Meaning::RouteCounts, ROUTE_COUNTS, parameters![limit(at_most), from])
    }

    pub(in crate::tables) fn lane_counts(at_most: usize, from: i64) -> Self {
        Self::new(Meaning::LaneCounts, LANE_COUNTS, parameters![limit(at_most), from])
    }

    pub(in crate::tables) fn ready_activities(lanes: &[LaneId], at_most: usize, from: i64) -> Self {
        let accepted: Vec<i64> = lanes.iter().map(|lane| number(lane.0)).collect();
        let meaning = Meaning::ReadyActivities(lanes.to_vec(), at_most);
        Self::new(meaning, READY_ACTIVITIES, parameters![accepted, limit(at_most), from])
    }

    /// Locks sessions of ready activities, and those of the activities that these owners may take.
    pub(in crate::tables) fn ready_in_sessions(
        owners: Vec<String>,
        lanes: &[LaneId],
        at_most: usize,
        at: Option<Timestamp>,
    ) -> [Self; 2] {
        let accepted: Vec<i64> = lanes.iter().map(|lane| number(lane.0)).collect();
        let parameters = parameters![owners, accepted, limit(at_most), at.map(micros)];
        [
            Self::new(Meaning::SessionsOfReady, SESSIONS_OF_READY, Vec::new()),
            Self::new(Meaning::ReadyInSessions(at_most), READY_IN_SESSIONS, parameters),
        ]
    }

    pub(in crate::tables) fn session_lanes() -> Self {
        Self::new(Meaning::SessionLanes, SESSION_LANES, Vec::new())
    }
}
