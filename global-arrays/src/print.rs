//! Looking at arrays: their elements as text, and who owns what.
//!
//! Elements are written by the first rank of the array's group, which fetches them piece by piece, some hundred
//! kilobytes at a time, or a row, of which it holds the text: an array of any size may be written that has not rows of any. The last two axes make tables, with indices of the array along
//! both sides; the axes before them number the tables.

use std::collections::BTreeMap;
use std::fmt::{self, Display, LowerExp};
use std::io::{self, Write};
use std::ops::Range;

use bytemuck::Pod;
use ndarray::Dimension;

use crate::agree::Outcome;
use crate::array::GlobalArray;
use crate::axes::advance;
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::patch::Patch;
use crate::slice::GlobalSlice;

/// Elements that are fetched at once, where a row has not more.
const AT_ONCE: usize = 1 << 14;

/// How elements are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Of an axis longer than twice this, only so many elements at either end; `None`: all.
    pub ends: Option<usize>,
    /// Digits behind the point.
    pub digits: usize,
    /// Whether numbers have exponents (`1.5e-3`).
    pub exponent: bool,
}

impl Default for Layout {
    /// Four elements at each end of an axis, with six digits.
    fn default() -> Self {
        Layout { ends: Some(4), digits: 6, exponent: false }
    }
}

impl Layout {
    /// All elements, with six digits.
    pub fn all() -> Self {
        Layout { ends: None, ..Layout::default() }
    }

    /// The indices that are shown of a range: in two parts, if there is something between.
    fn shown(&self, range: Range<usize>) -> (Range<usize>, Range<usize>) {
        match self.ends {
            Some(ends) if range.len() > ends.saturating_mul(2) => {
                (range.start..range.start + ends, range.end - ends..range.end)
            }
            _ => (range.clone(), range.end..range.end),
        }
    }

    fn element<T: Display + LowerExp>(&self, value: &T) -> String {
        let digits = self.digits;
        if self.exponent { format!("{value:.digits$e}") } else { format!("{value:.digits$}") }
    }
}

impl<T: Pod + Display + LowerExp, D: Dimension> GlobalArray<T, D> {
    /// Writes the array to standard output of its group's first rank, long axes by their ends (`GA_Print`). Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::write_to`].
    #[track_caller]
    pub fn print(&self) -> Result<()> {
        self.whole().print()
    }

    /// Writes the array as text, on its group's first rank; other ranks' `out` is not used (`GA_Print_file`).
    /// Collective.
    ///
    /// # Errors
    /// [`Error::Output`], on all ranks alike.
    #[track_caller]
    pub fn write_to(&self, out: &mut impl Write, layout: Layout) -> Result<()> {
        self.whole().write_to(out, layout)
    }
}

impl<T: Pod + Display + LowerExp, D: Dimension> GlobalSlice<'_, T, D> {
    /// Writes the patch to standard output of the array's first rank, long axes by their ends (`NGA_Print_patch`).
    /// Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::write_to`].
    #[track_caller]
    pub fn print(&self) -> Result<()> {
        self.write_to(&mut io::stdout(), Layout::default())
    }

    /// Writes the patch as text, as [`GlobalArray::write_to`] does. Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::write_to`].
    #[track_caller]
    pub fn write_to(&self, out: &mut impl Write, layout: Layout) -> Result<()> {
        let group = self.array.group();
        let before = self.array.sync();
        let written = match group.rank() {
            0 => Page { slice: *self, layout, width: 0 }.write(out),
            _ => Ok(()),
        };
        let agreed = Outcome::of(written).agree(group).map_err(|source| self.array.runtime(source))?;
        before?;
        agreed.map_err(|(_, source)| Error::Output { array: self.array.name().into(), source })
    }
}

/// What is being written.
struct Page<'a, T, D> {
    slice: GlobalSlice<'a, T, D>,
    layout: Layout,
    /// Of a column, so far: it only grows, so that rows stay in line.
    width: usize,
}

impl<T: Pod + Display + LowerExp, D: Dimension> Page<'_, T, D> {
    fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        let (array, patch) = (self.slice.array, self.slice.patch);
        let title = array.summary();
        if patch == Patch::whole(array.shape()) {
            writeln!(out, "{title}")?;
        } else {
            writeln!(out, "{patch} of {title}")?;
        }
        if patch.is_empty() {
            return writeln!(out, "  (no elements)");
        }
        let tables = patch.ndim().saturating_sub(2);
        let shown: Vec<Vec<usize>> = (0..tables)
            .map(|axis| {
                let (first, last) = self.layout.shown(patch.range(axis));
                first.chain(last).collect()
            })
            .collect();
        let counts: Vec<usize> = shown.iter().map(Vec::len).collect();
        let mut at = vec![0; tables];
        if counts.contains(&0) {
            return out.flush();
        }
        loop {
            let leading: Vec<usize> = at.iter().zip(&shown).map(|(at, shown)| shown[*at]).collect();
            if tables > 0 {
                let indices: String = leading.iter().map(|index| format!("{index}, ")).collect();
                writeln!(out, "[{indices}.., ..]")?;
            }
            self.table(&leading, out)?;
            if !advance(&mut at, &counts) {
                return out.flush();
            }
        }
    }

    /// The last two axes (or the only one, as a row), at these indices of those before.
    fn table(&mut self, leading: &[usize], out: &mut impl Write) -> io::Result<()> {
        let patch = self.slice.patch;
        let dims = patch.ndim();
        let columns = self.layout.shown(patch.range(dims - 1));
        let rows = if dims > 1 { patch.range(dims - 2) } else { 0..1 };
        let label = if dims > 1 { rows.end.to_string().len().max(3) } else { 0 };
        let of_row = (columns.0.len() + columns.1.len()).max(1);
        let (first, last) = self.layout.shown(rows.clone());
        let gap = (last.start > first.end).then_some(first.end);
        let mut rows = first.chain(last).peekable();
        let mut headed = false;
        while rows.peek().is_some() {
            // So many that their elements are known before the first is written, which makes columns as wide as they must be.
            let some: Vec<usize> = rows.by_ref().take((AT_ONCE / of_row).max(1)).collect();
            let mut text = Vec::with_capacity(some.len());
            for run in some.chunk_by(|row, next| row + 1 == *next) {
                let run = run[0]..run[run.len() - 1] + 1;
                let [left, right] = [self.fetch(leading, &run, &columns.0)?, self.fetch(leading, &run, &columns.1)?];
                let row = |all: &[String], row: usize, len: usize| all[row * len..][..len].to_vec();
                text.extend(
                    (0..run.len()).map(|at| (row(&left, at, columns.0.len()), row(&right, at, columns.1.len()))),
                );
            }
            let longest = text.iter().flat_map(|(left, right)| left.iter().chain(right)).map(String::len).max();
            let widest_index = patch.range(dims - 1).end.saturating_sub(1).to_string().len();
            self.width = self.width.max(longest.unwrap_or(0)).max(widest_index);
            if !std::mem::replace(&mut headed, true) {
                let [left, right] = [&columns.0, &columns.1]
                    .map(|columns| columns.clone().map(|column| column.to_string()).collect::<Vec<_>>());
                self.line(out, &format!("{:label$}", ""), &left, &right, columns.1.start > columns.0.end)?;
            }
            let mut before = None;
            for (row, (left, right)) in some.into_iter().zip(text) {
                if gap.is_some_and(|gap| gap <= row && before.is_none_or(|before| before < gap)) {
                    writeln!(out, "{:>label$}", "...")?;
                }
                before = Some(row);
                let name = if dims > 1 { format!("{row:>label$}") } else { String::new() };
                self.line(out, &name, &left, &right, columns.1.start > columns.0.end)?;
            }
        }
        Ok(())
    }

    fn line(&self, out: &mut impl Write, name: &str, left: &[String], right: &[String], gap: bool) -> io::Result<()> {
        let width = self.width;
        write!(out, "{name}")?;
        left.iter().try_for_each(|text| write!(out, "  {text:>width$}"))?;
        if gap {
            write!(out, "  ...")?;
        }
        right.iter().try_for_each(|text| write!(out, "  {text:>width$}"))?;
        writeln!(out)
    }

    /// Some rows and columns of a table, element by element.
    fn fetch(&self, leading: &[usize], rows: &Range<usize>, columns: &Range<usize>) -> io::Result<Vec<String>> {
        let dims = self.slice.patch.ndim();
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = Patch::from_fn(dims, |axis| match dims - axis {
            1 => columns.clone(),
            2 => rows.clone(),
            _ => leading[axis]..leading[axis] + 1,
        });
        let elements = self.slice.array.get(wanted).map_err(io::Error::other)?;
        Ok(elements.iter().map(|value| self.layout.element(value)).collect())
    }
}

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// The array in one line: name, elements, shape, blocks, bytes (one line of `GA_Summarize`).
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let world = armci_core::World::init()?;
    /// let a = global_arrays::GlobalArray::<f64>::create(&world, "fock", [100, 40])?;
    /// assert_eq!(a.summary(), "'fock': f64 [100, 40] in [1, 1] blocks on 1 rank, 32000 bytes");
    /// # a.destroy()?;
    /// # world.finalize()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn summary(&self) -> String {
        let element = std::any::type_name::<T>();
        let ranks = self.group().size();
        format!(
            "'{}': {element} {:?} in {:?} blocks on {ranks} rank{}, {} bytes",
            self.name(),
            self.shape(),
            &self.distribution().blocks()[..],
            if ranks == 1 { "" } else { "s" },
            self.len() * size_of::<T>()
        )
    }
}

/// Who owns what, a line for each rank that owns something (`GA_Print_distribution`).
/// ```
/// use global_arrays::Distribution;
///
/// let halves = Distribution::regular(&[10, 4], 2, &[1, 1]);
/// assert_eq!(halves.to_string(), "[10, 4] in [2, 1] blocks\nrank 0: [0..5, 0..4]\nrank 1: [5..10, 0..4]");
/// ```
impl Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in {:?} blocks", self.shape(), self.blocks())?;
        let ghosts = self.ghosts();
        if ghosts.iter().any(|width| *width > 0) {
            write!(f, " with {ghosts:?} ghost cells around")?;
        }
        let mut owned = BTreeMap::<usize, Vec<String>>::new();
        for (rank, block) in self.owners(&Patch::whole(self.shape())) {
            owned.entry(rank).or_default().push(block.to_string());
        }
        owned.iter().try_for_each(|(rank, blocks)| write!(f, "\nrank {rank}: {}", blocks.join(" ")))
    }
}
