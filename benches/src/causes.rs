//! Why a row misses its target, where that is known: what an investigation found, in a line. It is shown only where the
//! target is missed, beside by how much. What is missed without a line here says that no cause is known.

use crate::line::Class;
use crate::report::Report;

/// Rows by name (or by what their names begin with, before a `*`), and the cause.
const KNOWN: [(&str, &str); 13] = [
    ("put_any_*", COPY),
    ("get_any_*", COPY),
    ("acc_65536", LOCK),
    ("acc_262144", LOCK),
    (
        "far_get_8",
        "a thread of ours can sleep over the queue, and each look at a queue with such a descriptor is a system call \
         more: the bare program with one takes as long as we do, or longer",
    ),
    ("far_put_8_flow", "each put asks for its own delivery, and the queue is one that a thread can sleep over"),
    ("far_put_1m", STREAM),
    ("far_get_1m", STREAM),
    ("far_put_rows", PACKED),
    ("far_get_rows", PACKED),
    ("far_acc_1m_busy", PACKED),
    ("far_*_apart", "the loopback's own kernel work needs the core that the computing rank has"),
    (
        "far_scf_share",
        "a progress thread that shares its core with a computing rank waits for a slice of the scheduler now and then",
    ),
];

const COPY: &str = "the bare loop itself takes as long at this alignment when it stands behind a look-up, as a transfer \
                    does: of copies in a row the next begins before the last is over";
const LOCK: &str = "the atomic that takes the elements' lock drains the pipeline of the processor, which the bare loop does \
                    not have to";
const STREAM: &str = "the queue is one that a thread can sleep over, which the bare program's is not";
const PACKED: &str = "goes by message: packed, sent, unpacked and answered piece by piece, where one long transfer is none \
                      of that";

/// Rows that lean on how fast a line passes between the cores, without a limit that does so too.
const BY_DISTANCE: [&str; 6] = ["barrier_2", "am_request", "am_flood", "acc_1m_am", "add_spread", "allocate_free"];

/// The cause of a missed target, if it is known.
pub fn of(name: &str, report: &Report) -> Option<String> {
    let known = KNOWN.iter().find(|(pattern, _)| fits(pattern, name)).map(|(_, why)| (*why).to_owned());
    known.or_else(|| {
        let passes = || report.line.iter().fold(0.0, |most: f64, line| most.max(*line));
        let far = report.class == Class::Far || report.flipped();
        let leans = far && BY_DISTANCE.contains(&name);
        leans.then(|| format!("the cores were far apart in this run: a line took {:.0} ns between them", passes()))
    })
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((begin, end)) => name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::rows;

    #[test]
    fn every_cause_is_of_a_row_of_which_something_is_asked() {
        for pattern in KNOWN.iter().map(|(pattern, _)| *pattern).chain(BY_DISTANCE) {
            // (What is shown for information is there too, and is never missed.)
            assert!(rows().any(|row| fits(pattern, row.name)), "{pattern}");
        }
    }

    #[test]
    fn far_cores_are_a_cause_of_what_leans_on_them_alone() {
        let far = Report { class: Class::Far, line: vec![190.0], ..Report::default() };
        assert!(of("barrier_2", &far).is_some_and(|why| why.contains("190 ns")));
        assert_eq!(of("put_8", &far), None);
        assert_eq!(of("barrier_2", &Report::default()), None);
        assert!(of("acc_65536", &far).is_some_and(|why| why.contains("lock")));
        assert!(of("far_add_apart", &far).is_some() && of("far_add", &far).is_none());
    }
}
