//! Why a row misses its target, where that is known: what an investigation found, in a line. It is shown only where the
//! target is missed, beside by how much. What is missed without a line here says that no cause is known.

use crate::line::Class;
use crate::report::Report;

/// Rows by name, and the cause.
const KNOWN: [(&str, &str); 18] = [
    ("put_any_4096", COPY),
    ("get_any_4096", COPY),
    ("put_any_16384", COPY),
    ("get_any_16384", COPY),
    ("put_any_65536", COPY),
    ("get_any_65536", COPY),
    ("put_any_262144", PLACE),
    ("get_any_262144", PLACE),
    ("acc_65536", LOCK),
    ("acc_262144", LOCK),
    ("far_get_8", DESCRIPTOR),
    ("far_put_8_flow", DESCRIPTOR),
    ("far_put_1m", STREAM),
    ("far_get_1m", STREAM),
    ("far_put_rows", PACKED),
    ("far_get_rows", PACKED),
    ("far_acc_1m_busy", ADDED),
    (
        "far_scf_share",
        "without threads a rank calls in after each task, so a number waits for half a task; with them it waits for a wake-up \
         beside a computation and the accumulates sent before it, and more numbers are drawn from afar",
    ),
];

const COPY: &str = "the bare loop itself takes as long at this alignment when it stands behind a look-up, as a transfer \
                    does: of copies in a row the next begins before the last is over";
const PLACE: &str = "at the worst of 64 alignments; downward loops, half vectors and earlier string copies were tried, and \
                     lose at others";
const LOCK: &str = "the atomic that takes the elements' lock drains the pipeline of the processor, which the bare loop does \
                    not have to";
const DESCRIPTOR: &str = "a thread of ours can sleep over its queue, and with libfabric before 1.18 the descriptor that \
                          this takes costs the bare program as much (see the figure beside the bare program that \
                          could sleep)";

const STREAM: &str = "the signals of a queue that a thread can sleep over cost a system call or two for each transfer; one at a \
                      time is faster than the bare program's";
const PACKED: &str = "packing and unpacking take the processors with which TCP copies: each row of 64 bytes is a cache line of \
                      its own, of memory that does not fit the second cache";
const ADDED: &str = "the target's processor adds one piece after it has received it and before it receives the next";

/// Rows that lean on how fast a line passes between the cores, without a limit that does so too.
const BY_DISTANCE: [&str; 6] = ["barrier_2", "am_request", "am_flood", "acc_1m_am", "add_spread", "allocate_free"];

/// The cause of a missed target, if it is known.
pub fn of(name: &str, report: &Report) -> Option<String> {
    let known = KNOWN.iter().find(|(known, _)| *known == name).map(|(_, why)| (*why).to_owned());
    known.or_else(|| {
        let passes = || report.line.iter().fold(0.0, |most: f64, line| most.max(*line));
        let far = report.class == Class::Far || report.flipped();
        let leans = far && BY_DISTANCE.contains(&name);
        leans.then(|| format!("the cores were far apart in this run: a line took {:.0} ns between them", passes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::rows;

    #[test]
    fn every_cause_is_of_a_row_of_which_something_is_asked() {
        for name in KNOWN.iter().map(|(name, _)| *name) {
            assert!(rows().any(|row| row.name == name && row.is_judged()), "{name}");
        }
        // (Of those that lean on the distance, some are shown for information.)
        for name in BY_DISTANCE {
            assert!(rows().any(|row| row.name == name), "{name}");
        }
    }

    #[test]
    fn far_cores_are_a_cause_of_what_leans_on_them_alone() {
        let far = Report { class: Class::Far, line: vec![190.0], ..Report::default() };
        assert!(of("barrier_2", &far).is_some_and(|why| why.contains("190 ns")));
        assert_eq!(of("put_8", &far), None);
        assert_eq!(of("barrier_2", &Report::default()), None);
        assert!(of("acc_65536", &far).is_some_and(|why| why.contains("lock")));
    }
}
