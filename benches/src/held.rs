//! What the rows are held against in a run: a row and a report together.

use crate::beside;
use crate::figure::Figure;
use crate::report::Report;
use crate::row::{Limit, Row};

impl Row {
    /// What it is held against in this run, and how that is called if it is one of several.
    pub fn limit<'a>(&self, report: &'a Report) -> Option<(&'a str, Figure)> {
        match self.limit? {
            Limit::Machine(name) => Some(("", report.machine.get(name)?)),
            Limit::Peer(name) => Some(("", report.peer.get(name)?)),
            Limit::Ours(name) => Some(("", report.ours.get(name)?)),
            Limit::Best => beside::best(&report.ours, self.name),
        }
    }

    /// What it must not exceed in this run.
    pub fn most(&self, report: &Report) -> Option<f64> {
        self.bound?.value(self.limit(report).map(|(_, limit)| limit.median), report.class)
    }

    /// All that is asked of it, in words; none if nothing is.
    pub fn asked(&self, report: &Report) -> Option<String> {
        let bound = self.bound.map(|bound| bound.words(self.limit, self.unit, report.class));
        let tail = self.tail_at_most.map(|most| format!("p99 {}", self.unit.show_bound(most)));
        let peer = self.default_path.then(|| "no slower than the peer".to_owned());
        let all: Vec<String> = [bound, tail, peer].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}
