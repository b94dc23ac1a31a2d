//! Pictures of records: a line for each series over its axis, as SVG that needs nothing from elsewhere.

use plotters::prelude::*;

use crate::error::{Error, Result};
use crate::record::Record;

const SIZE: (u32, u32) = (760, 420);
const COLOURS: [RGBColor; 8] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(148, 103, 189),
    RGBColor(255, 127, 14),
    RGBColor(23, 190, 207),
    RGBColor(140, 86, 75),
    RGBColor(127, 127, 127),
];

/// Points of one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it is called.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// A bar, divided.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What it is called.
    pub name: String,
    /// Its parts from below; every bar has the same ones.
    pub parts: Vec<(String, f64)>,
}

/// What stands beside the lines.
#[derive(Clone, Copy, Debug)]
pub struct Axes<'a> {
    /// Above.
    pub title: &'a str,
    /// Below.
    pub axis: &'a str,
    /// On the left.
    pub unit: &'a str,
}

/// The lines of these records.
pub fn series(records: &[&Record]) -> Vec<Series> {
    collect(records.iter().filter_map(|record| Some((record.series(), record.at?, record.value))))
}

/// Lines by name, those with more than one point first; points that logarithms do not have are left out.
pub fn collect(points: impl Iterator<Item = (String, f64, f64)>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (name, at, value) in points {
        if !(at > 0.0 && value > 0.0 && value.is_finite()) {
            continue;
        }
        match all.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push((at, value)),
            None => all.push(Series { name, points: vec![(at, value)] }),
        }
    }
    for series in &mut all {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    all.sort_by_key(|series| series.points.len() < 2);
    all
}

/// Whether there is a line to be seen.
pub fn worth_it(all: &[Series]) -> bool {
    all.iter().any(|series| series.points.len() > 1)
}

/// Draws lines over logarithmic axes.
///
/// # Errors
/// What the plotting library says.
pub fn draw(axes: &Axes<'_>, all: &[Series]) -> Result<String> {
    let Axes { title, axis, unit } = *axes;
    let wrong = |error: &dyn std::fmt::Display| Error::Draw(format!("'{title}': {error}"));
    let points = || all.iter().flat_map(|series| series.points.iter().copied());
    let range = |of: fn((f64, f64)) -> f64| {
        let (low, high) = points().map(of).fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        // A single place still needs an axis of some length.
        if high > low { (low / 1.1)..(high * 1.1) } else { (low / 2.0)..(high * 2.0) }
    };
    if points().next().is_none() {
        return Err(wrong(&"there is nothing to draw"));
    }
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(|error| wrong(&error))?;
        let mut chart = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 18))
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(80)
            .build_cartesian_2d(range(|point| point.0).log_scale(), range(|point| point.1).log_scale())
            .map_err(|error| wrong(&error))?;
        chart
            .configure_mesh()
            .x_desc(axis)
            .y_desc(unit)
            .x_label_formatter(&|x| short(*x))
            .y_label_formatter(&|y| short(*y))
            .draw()
            .map_err(|error| wrong(&error))?;
        for (index, series) in all.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            chart
                .draw_series(LineSeries::new(series.points.iter().copied(), colour.stroke_width(2)))
                .map_err(|error| wrong(&error))?
                .label(series.name.clone())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
            chart
                .draw_series(series.points.iter().map(|point| Circle::new(*point, 3, colour.filled())))
                .map_err(|error| wrong(&error))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(|error| wrong(&error))?;
        root.present().map_err(|error| wrong(&error))?;
    }
    Ok(svg)
}

/// Draws bars side by side, their parts one above the other.
///
/// # Errors
/// What the plotting library says.
pub fn draw_bars(title: &str, unit: &str, bars: &[Bar]) -> Result<String> {
    let wrong = |error: &dyn std::fmt::Display| Error::Draw(format!("'{title}': {error}"));
    let height = |bar: &Bar| bar.parts.iter().map(|(_, value)| value).sum::<f64>();
    let most = bars.iter().map(height).fold(0.0, f64::max);
    if !(most > 0.0 && most.is_finite()) {
        return Err(wrong(&"there is nothing to draw"));
    }
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(|error| wrong(&error))?;
        let mut chart = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 18))
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(80)
            // Room for the names of the parts on the right.
            .build_cartesian_2d(0.0..bars.len() as f64 + 0.7, 0.0..most * 1.1)
            .map_err(|error| wrong(&error))?;
        // A bar's name stands in its middle, where a label is for each half.
        let name = |x: &f64| {
            let bar = bars.get(x.floor() as usize).filter(|_| (x.fract() - 0.5).abs() < 0.01);
            bar.map_or_else(String::new, |bar| bar.name.clone())
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(2 * bars.len() + 2)
            .x_label_formatter(&name)
            .y_desc(unit)
            .draw()
            .map_err(|error| wrong(&error))?;
        let parts = bars.first().map_or(&[][..], |bar| &bar.parts);
        for (index, (part, _)) in parts.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let boxes = bars.iter().enumerate().map(|(place, bar)| {
                let below: f64 = bar.parts.iter().take(index).map(|(_, value)| value).sum();
                let above = below + bar.parts.get(index).map_or(0.0, |(_, value)| *value);
                Rectangle::new([(place as f64 + 0.2, below), (place as f64 + 0.8, above)], colour.filled())
            });
            chart
                .draw_series(boxes)
                .map_err(|error| wrong(&error))?
                .label(part.clone())
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(|error| wrong(&error))?;
        root.present().map_err(|error| wrong(&error))?;
    }
    Ok(svg)
}

/// A number on an axis.
fn short(value: f64) -> String {
    let (value, letter) = match value {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let digits = if value >= 10.0 || value.fract() == 0.0 { 0 } else { 2 };
    format!("{value:.digits$}{letter}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_lines_of_a_picture() {
        let record = |protocol: &str, at: f64, value: f64| Record {
            protocol: protocol.into(),
            ranks: 2,
            ..Record::new("contig/get", value, "ns").at("bytes", at)
        };
        let records =
            [record("rma", 64.0, 20.0), record("rma", 16.0, 10.0), record("am", 16.0, 300.0), record("am", 64.0, 0.0)];
        let all = series(&records.iter().collect::<Vec<_>>());
        assert_eq!(all[0], Series { name: "get, rma".into(), points: vec![(16.0, 10.0), (64.0, 20.0)] });
        assert_eq!(all[1].points, [(16.0, 300.0)], "a logarithm has no zero");
        assert!(worth_it(&all) && !worth_it(&all[1..]));
        let svg = draw(&Axes { title: "latency", axis: "bytes", unit: "ns" }, &all).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("get, rma") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert!(draw(&Axes { title: "nothing", axis: "bytes", unit: "ns" }, &[]).is_err());
    }

    #[test]
    fn numbers_on_an_axis_are_short() {
        assert_eq!([short(16.0), short(1024.0), short(2e6), short(0.25)], ["16", "1.02k", "2M", "0.25"]);
    }
}
