//! What follows from latencies by size: time per byte (paper 003, Fig. 6), the share of the best rate and the size at
//! which half of it is reached (Fig. 7, N1/2).

use crate::record::Record;

/// Adds them for each operation and circumstance that was swept over bytes.
pub fn efficiency(records: &mut Vec<Record>) {
    let swept = |record: &&Record| record.axis.as_deref() == Some("bytes") && record.unit == "ns";
    let mut curves: Vec<Vec<Record>> = Vec::new();
    for record in records.iter().filter(swept).filter(|record| record.id != "contig/put_start") {
        let same = |curve: &&mut Vec<Record>| {
            let first = &curve[0];
            (&first.id, first.series()) == (&record.id, record.series())
        };
        match curves.iter_mut().find(same) {
            Some(curve) => curve.push(record.clone()),
            None => curves.push(vec![record.clone()]),
        }
    }
    for mut curve in curves {
        curve.sort_by(|a, b| a.at.unwrap_or(0.0).total_cmp(&b.at.unwrap_or(0.0)));
        let rates: Vec<(f64, f64)> =
            curve.iter().map(|r| (r.at.unwrap_or(0.0), r.at.unwrap_or(0.0) / r.value)).collect();
        let best = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        for (record, (bytes, rate)) in curve.iter().zip(&rates) {
            let like = |what: &str, value: f64, unit: &str| Record {
                id: format!("{}/{what}", record.id),
                value,
                unit: unit.into(),
                low: None,
                high: None,
                p99: None,
                limit: None,
                of_limit: None,
                ..record.clone()
            };
            records.push(like("per_byte", record.value / bytes, "ns/byte"));
            records.push(like("rate", *rate, "GB/s"));
            records.push(like("efficiency", rate / best, "share"));
        }
        if let Some(half) = half_reached(&rates, best / 2.0) {
            let Record { ranks, nodes, protocol, progress, side, .. } = curve[0].clone();
            let id = format!("{}/n_half", curve[0].id);
            records.push(Record { ranks, nodes, protocol, progress, side, ..Record::new(id, half, "bytes") });
        }
    }
}

/// The size at which a rate is first reached, between two measured sizes by their logarithms.
fn half_reached(rates: &[(f64, f64)], half: f64) -> Option<f64> {
    let first = rates.iter().position(|(_, rate)| *rate >= half)?;
    let (bytes, rate) = rates[first];
    let Some(&(before, slower)) = first.checked_sub(1).map(|index| &rates[index]) else { return Some(bytes) };
    let share = (half - slower) / (rate - slower);
    Some(before * (bytes / before).powf(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_best_rate_is_found_between_sizes() {
        // T = 100 ns + m / (10 B/ns): half of 10 GB/s at m = 1000.
        let mut records: Vec<Record> = (4..=20)
            .step_by(2)
            .map(|power| f64::from(1 << power))
            .map(|bytes| Record::new("contig/get", 100.0 + bytes / 10.0, "ns").at("bytes", bytes))
            .collect();
        efficiency(&mut records);
        let half = records.iter().find(|record| record.id == "contig/get/n_half").unwrap();
        assert!((900.0..1100.0).contains(&half.value), "{half:?}");
        let of = |id: &str| records.iter().filter(|record| record.id == id).collect::<Vec<_>>();
        assert_eq!(of("contig/get/efficiency").last().unwrap().value, 1.0);
        assert_eq!(of("contig/get/per_byte")[0].value, (100.0 + 1.6) / 16.0);
    }
}
