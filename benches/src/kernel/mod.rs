//! Application kernels on distributed arrays, each of which checks its answer; and what their times by ranks say.
//!
//! *Strong* scaling keeps the problem, *weak* scaling the share of each rank (elements, not operations).

pub mod boltzmann;
pub mod lu;
pub mod matmul;
pub mod scf;

use armci_core::{Reduce, World};

use crate::error::Result;
use crate::record::Record;
use crate::setup::{Notes, Setup};
use crate::study::Wanted;

/// Jobs of strong and of weak scaling: a problem of `n` by `n` on the first number of ranks; `multiple` divides lengths.
fn scaled(wanted: &Wanted, study: &str, n: usize, multiple: usize, ways: &[&str]) -> Vec<Setup> {
    let n = wanted.n.unwrap_or(n);
    let jobs = wanted.each(study, if wanted.quick { &[1, 2] } else { &[1, 2, 4] }, &["rma"], &["thread"]);
    let first = jobs.first().map_or(1, |job| job.ranks);
    let mut all = Vec::new();
    for kind in ["strong", "weak"] {
        // On one number of ranks both are the same.
        if kind == "weak" && jobs.iter().all(|job| job.ranks == first) {
            continue;
        }
        for way in ways {
            for job in &jobs {
                let longer = (job.ranks as f64 / first as f64).sqrt();
                let weak = ((n as f64 * longer / multiple as f64).round() as usize).max(1) * multiple;
                let n = if kind == "strong" { n } else { weak };
                let part = if way.is_empty() { kind.to_owned() } else { format!("{kind}/{way}") };
                all.push(Setup { part, n, ..job.clone() });
            }
        }
    }
    all
}

/// A grid of so many ranks, as square as can be: rows, not more than columns.
fn grid(ranks: usize) -> (usize, usize) {
    let rows = (1..=ranks).take_while(|rows| rows * rows <= ranks).filter(|rows| ranks.is_multiple_of(*rows)).last();
    let rows = rows.unwrap_or(1);
    (rows, ranks / rows)
}

/// Notes the phases of a run, each the slowest rank's, and its rate, held against a limit; collective, rank 0 notes.
fn note_times(
    world: &World,
    setup: &Setup,
    notes: &mut Notes,
    phases: &[(&str, f64)],
    (unit, work, limit): (&str, f64, &str),
) -> Result<()> {
    let mut seconds: Vec<f64> = phases.iter().map(|(_, seconds)| *seconds).collect();
    world.all_reduce(&mut seconds, Reduce::Max)?;
    if world.rank() == 0 {
        let (id, ranks) = (format!("{}/{}", setup.study, setup.part), world.size() as f64);
        let size = format!("{0} x {0}", setup.n);
        for ((phase, _), seconds) in phases.iter().zip(&seconds) {
            let id = if phase.is_empty() { id.clone() } else { format!("{id}/{phase}") };
            notes.add(Record::new(id, *seconds, "s").at("ranks", ranks).remark(size.clone()));
        }
        let rate = Record::new(format!("{id}/rate"), work / seconds[0], unit);
        notes.add(rate.at("ranks", ranks).against(limit).remark(size));
    }
    Ok(())
}

/// Adds to rates by ranks how efficient that is: the share of so many times the rate of the fewest ranks.
pub fn scaling(records: &mut Vec<Record>, study: &str) {
    let rates: Vec<Record> = records
        .iter()
        .filter(|record| record.id.starts_with(&format!("{study}/")) && record.id.ends_with("/rate"))
        .cloned()
        .collect();
    for rate in &rates {
        let like = |other: &&Record| {
            (&other.id, &other.protocol, &other.progress) == (&rate.id, &rate.protocol, &rate.progress)
        };
        let Some(base) = rates.iter().filter(like).min_by_key(|other| other.ranks) else { continue };
        let share = rate.value / base.value * base.ranks as f64 / rate.ranks as f64;
        let id = rate.id.replace("/rate", "/efficiency");
        let (limit, of_limit) = (None, None);
        records.push(Record { id, value: share, unit: "share".into(), limit, of_limit, ..rate.clone() });
    }
}

/// A number between -1/2 and 1/2 that looks like chance, of two indices: the same on every rank.
fn scattered(i: usize, j: usize) -> f64 {
    let mut x = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (j as u64).wrapping_mul(0xd1b5_4a32_d192_ed03);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64 - 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_as_square_as_can_be() {
        assert_eq!([1, 2, 3, 4, 6, 12].map(grid), [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 4)]);
    }

    #[test]
    fn efficiency_is_relative_to_the_fewest_ranks() {
        let rate = |ranks: usize, value: f64| Record { ranks, ..Record::new("lu/strong/put/rate", value, "GFLOP/s") };
        let mut records = vec![rate(2, 15.0), rate(1, 10.0)];
        scaling(&mut records, "lu");
        let of = |ranks| records.iter().find(|r| r.id == "lu/strong/put/efficiency" && r.ranks == ranks).unwrap().value;
        assert_eq!((of(1), of(2)), (1.0, 0.75));
    }

    #[test]
    fn weak_scaling_keeps_each_ranks_share() {
        let jobs = scaled(&Wanted { ranks: vec![1, 4], ..Wanted::default() }, "lu", 512, 64, &["put"]);
        let seen: Vec<_> = jobs.iter().map(|job| (&*job.part, job.ranks, job.n)).collect();
        assert_eq!(seen, [("strong/put", 1, 512), ("strong/put", 4, 512), ("weak/put", 1, 512), ("weak/put", 4, 1024)]);
    }

    #[test]
    fn scattered_numbers_are_centred() {
        let mean = (0..10_000).map(|i| scattered(i, 3 * i)).sum::<f64>() / 10_000.0;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!(scattered(1, 2) != scattered(2, 1));
    }
}
