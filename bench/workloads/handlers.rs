//! All orchestrations and activities that the workloads are made of.

use duroxide::{OrchestrationRegistry, runtime::registry::ActivityRegistry};

use super::{
    activity, children, continue_as_new, event, fan_out, hello, idle, long, payload, replay, restart,
    sequence, timers,
};

pub fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register(hello::GREET, hello::greet)
        .register(activity::INCREMENT, activity::increment)
        .register(payload::ECHO, payload::echo)
        .register(long::STEP, long::step)
        .register(restart::HOLD, restart::hold)
        .build()
}

pub fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register(hello::HELLO, hello::hello)
        .register(sequence::SEQUENCE, sequence::sequence)
        .register(sequence::steps::STEPS, sequence::steps::steps)
        .register(fan_out::FAN_OUT, fan_out::fan_out)
        .register(children::PARENT, children::parent)
        .register(children::CHILD, children::child)
        .register(timers::TIMERS, timers::timers)
        .register(event::LISTEN, event::listen)
        .register(event::LISTEN_FOR_OTHERS, event::listen_for_others)
        .register(long::LONG, long::long)
        .register(continue_as_new::LOOP, continue_as_new::next_round)
        .register(idle::WAIT, idle::wait)
        .register(restart::INTERRUPTED, restart::interrupted)
        .register(payload::CARRY, payload::carry)
        .register(replay::REMEMBER, replay::remember)
        .build()
}
