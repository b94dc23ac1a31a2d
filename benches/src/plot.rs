//! Pictures of records: a line for each series over its axis, as SVG that needs nothing from elsewhere.

use plotters::prelude::*;

use crate::error::{Error, Result};
use crate::record::Record;

const SIZE: (u32, u32) = (900, 420);
/// What of it the names of lines and parts take, on the right.
const NAMES: u32 = 230;
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

/// An axis with logarithms: from where to where, and of which base, so that there are numbers on it.
fn scale(values: impl Iterator<Item = f64>, binary: bool) -> (std::ops::Range<f64>, f64) {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
    if binary || high / low >= 20.0 {
        // A single place still needs an axis of some length.
        let range = if high > low { (low / 1.15)..(high * 1.15) } else { (low / 2.0)..(high * 2.0) };
        return (range, if binary { 2.0 } else { 10.0 });
    }
    (2f64.powf((low / 1.05).log2().floor())..2f64.powf((high * 1.05).log2().ceil()), 2.0)
}

/// Draws lines over logarithmic axes.
///
/// # Errors
/// What the plotting library says.
pub fn draw(axes: &Axes<'_>, all: &[Series]) -> Result<String> {
    let Axes { title, axis, unit } = *axes;
    let wrong = |error: &dyn std::fmt::Display| Error::Draw(format!("'{title}': {error}"));
    let points = || all.iter().flat_map(|series| series.points.iter().copied());
    if points().next().is_none() {
        return Err(wrong(&"there is nothing to draw"));
    }
    let (across, binary) = scale(points().map(|point| point.0), true);
    let (upwards, base) = scale(points().map(|point| point.1), false);
    let number: fn(f64) -> String = if axis.contains("bytes") { size } else { count };
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(|error| wrong(&error))?;
        let (left, right) = root.split_horizontally(SIZE.0 - NAMES);
        let mut chart = ChartBuilder::on(&left)
            .caption(title, ("sans-serif", 18))
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(across.log_scale().base(binary), upwards.log_scale().base(base))
            .map_err(|error| wrong(&error))?;
        chart
            .configure_mesh()
            .x_desc(axis)
            .y_desc(unit)
            // More lines are more than half of a page's bytes.
            .max_light_lines(1)
            .x_label_formatter(&|x| number(*x))
            .y_label_formatter(&|y| short(*y))
            .draw()
            .map_err(|error| wrong(&error))?;
        for (index, series) in all.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            chart
                .draw_series(LineSeries::new(series.points.iter().copied(), colour.stroke_width(2)))
                .map_err(|error| wrong(&error))?;
            chart
                .draw_series(series.points.iter().map(|point| Circle::new(*point, 3, colour.filled())))
                .map_err(|error| wrong(&error))?;
        }
        names(&right, all.iter().map(|series| series.name.as_str())).map_err(|error| wrong(&error))?;
        root.present().map_err(|error| wrong(&error))?;
    }
    Ok(svg)
}

/// What each colour means, one below the other.
fn names<'a, B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    all: impl Iterator<Item = &'a str>,
) -> std::result::Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    for (index, name) in all.enumerate() {
        let (y, colour) = (50 + 20 * index as i32, COLOURS[index % COLOURS.len()]);
        area.draw(&Rectangle::new([(4, y), (20, y + 8)], colour.filled()))?;
        area.draw(&Text::new(name.to_owned(), (26, y - 2), ("sans-serif", 12)))?;
    }
    Ok(())
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
        let (left, right) = root.split_horizontally(SIZE.0 - NAMES);
        let mut chart = ChartBuilder::on(&left)
            .caption(title, ("sans-serif", 18))
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..bars.len() as f64, 0.0..most * 1.1)
            .map_err(|error| wrong(&error))?;
        // A bar's name stands in its middle, where a label is for each half.
        let name = |x: &f64| {
            let bar = bars.get(x.floor() as usize).filter(|_| (x.fract() - 0.5).abs() < 0.01);
            bar.map_or_else(String::new, |bar| bar.name.clone())
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(2 * bars.len() + 1)
            .x_label_formatter(&name)
            .y_desc(unit)
            .draw()
            .map_err(|error| wrong(&error))?;
        let parts = bars.first().map_or(&[][..], |bar| &bar.parts);
        for index in 0..parts.len() {
            let colour = COLOURS[index % COLOURS.len()];
            let boxes = bars.iter().enumerate().map(|(place, bar)| {
                let below: f64 = bar.parts.iter().take(index).map(|(_, value)| value).sum();
                let above = below + bar.parts.get(index).map_or(0.0, |(_, value)| *value);
                Rectangle::new([(place as f64 + 0.2, below), (place as f64 + 0.8, above)], colour.filled())
            });
            chart.draw_series(boxes).map_err(|error| wrong(&error))?;
        }
        names(&right, parts.iter().map(|(part, _)| part.as_str())).map_err(|error| wrong(&error))?;
        root.present().map_err(|error| wrong(&error))?;
    }
    Ok(svg)
}

/// How many on an axis: there are no parts of them.
fn count(value: f64) -> String {
    if (value - value.round()).abs() < 1e-6 { short(value.round()) } else { String::new() }
}

/// A number of bytes on an axis.
fn size(value: f64) -> String {
    let (value, letter) = match value {
        v if v >= 1024.0 * 1024.0 => (v / 1024.0 / 1024.0, " MiB"),
        v if v >= 1024.0 => (v / 1024.0, " KiB"),
        v => (v, ""),
    };
    format!("{value:.0}{letter}")
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
    fn an_axis_has_numbers_however_short_it_is() {
        assert_eq!(scale([6.6, 9.0].into_iter(), false), (4.0..16.0, 2.0));
        assert_eq!(scale([6.6, 900.0].into_iter(), false).1, 10.0);
        let (one, base) = scale([8.0].into_iter(), true);
        assert!(one.start < 8.0 && one.end > 8.0 && base == 2.0);
    }

    #[test]
    fn numbers_on_an_axis_are_short() {
        assert_eq!([count(16.0), count(2.8)], ["16", ""]);
        assert_eq!([size(16.0), size(65536.0), size(2.0 * 1024.0 * 1024.0)], ["16", "64 KiB", "2 MiB"]);
        assert_eq!([short(16.0), short(1024.0), short(2e6), short(0.25)], ["16", "1.02k", "2M", "0.25"]);
    }
}
