//! Distributed arrays over one-sided communication.
//!
//! A [`GlobalArray`] is an array whose blocks live on the ranks of a job. Any
//! rank reads, writes or adds to any *patch* of it, whoever owns that, and
//! nobody else takes part: the model of Global Arrays, with the words of `ndarray`.
//!
//! ```text
//!                columns                     get(s![1..4, 2..6]) on any rank
//!            0  1  2 | 3  4  5                      |
//!          +---------+---------+                    v
//!        0 |         |         |        +---------+---------+
//!   rows 1 | rank 0  | rank 1  |        | from 0  | from 1  |   one strided
//!        2 |     [.. | .....]  |        +---------+---------+   transfer per owner
//!          +---------+---------+        | from 2  | from 3  |
//!        3 | rank 2 [| ..... ] |        +---------+---------+
//!        4 |         | rank 3  |
//!          +---------+---------+
//! ```
//!
//! ```
//! use armci_core::World;
//! use global_arrays::GlobalArray;
//! use ndarray::{Array2, arr2, s};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let world = World::init()?;
//!     let a = GlobalArray::<f64>::create(&world, "density", [100, 100])?;
//!     if world.rank() == 0 {
//!         a.put(s![10..12, 40..42], &arr2(&[[1.0, 2.0], [3.0, 4.0]]))?;
//!     }
//!     a.sync()?;
//!     a.accumulate(s![10..12, 40..42], 0.5, &Array2::ones((2, 2)))?;
//!     a.sync()?;
//!     let row = a.get(s![11, 40..42])?;
//!     assert_eq!(row.to_vec(), [3.0, 4.0].map(|x| x + 0.5 * world.size() as f64));
//!     a.destroy()?;
//!     world.finalize()?;
//!     Ok(())
//! }
//! ```
//!
//! # Creation
//! [`GlobalArray::create`] makes zeros in regular blocks, one on each rank of the world or of a team. More is said to a
//! [`Builder`]: smallest blocks, places to cut at, block-cyclic distributions (dealt in turn, ScaLAPACK's, tiled), ghost
//! cells, what is in it at first. [`GlobalArray::duplicate`] makes another like it. No rank stores who owns what: it is
//! computed, so that what describes an array of regular blocks is as small on many ranks as on one.
//!
//! All ranks of the group make the same array: where name, shape or distribution differ, all get an error that says which
//! rank is unlike. [`GlobalArray::destroy`] frees an array, together; one that is dropped and not destroyed costs its memory
//! and nothing else, and handles may go in any order.
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use armci_core::World;
//! use global_arrays::GlobalArray;
//! use ndarray::{Ix1, Ix3};
//!
//! let world = World::init()?;
//! // Whole rows of 8 and more on a rank.
//! let fock = GlobalArray::<f64>::builder(&world, "fock", [90, 90]).min_block(&[8, 90]).create()?;
//! let density = fock.duplicate("density")?;
//! // Blocks of 16 x 16 in turn to a column of ranks, each of which stores them as one matrix.
//! let dealt = GlobalArray::<f64>::builder(&world, "dealt", [90, 90])
//!     .scalapack(&[16, 16], &[world.size(), 1])
//!     .create()?;
//! let field = GlobalArray::<f32, Ix3>::builder(&world, "field", [20, 20, 10]).filled(1.0).create()?;
//! // On the ranks of this team alone.
//! let half = world.split(Some((world.rank() % 2) as i64), 0)?.expect("every rank has a colour");
//! let ours = GlobalArray::<i64, Ix1>::create(&half, "ours", 1000)?;
//! ours.destroy()?;
//! field.destroy()?;
//! for matrix in [dealt, density, fock] {
//!     matrix.destroy()?;
//! }
//! world.finalize()?;
//! # Ok(())
//! # }
//! ```
//!
//! # One-sided access
//! [`get`](GlobalArray::get), [`put`](GlobalArray::put) and [`accumulate`](GlobalArray::accumulate) move patches, also
//! with steps (`s![..;2, ..]`), between an array and any view of `ndarray`; a patch of many owners is split, and all of
//! them are under way at once. As in the runtime below: a put or accumulate may reuse its buffer on return and is
//! visible to others after [`GlobalArray::sync`]; a get is complete on return; accumulates are atomic per element and
//! commute.
//!
//! | | blocking | started now, waited for later |
//! |---|---|---|
//! | patches | [`get`](GlobalArray::get), [`get_into`](GlobalArray::get_into), [`put`](GlobalArray::put), [`accumulate`](GlobalArray::accumulate) | [`get_nb`](GlobalArray::get_nb), ..., with a buffer that a [`PatchHandle`] owns; [`nonblocking`], where views are lent |
//! | lists of elements | [`gather`](GlobalArray::gather), [`scatter`](GlobalArray::scatter), [`scatter_accumulate`](GlobalArray::scatter_accumulate); prepared once: [`elements`](GlobalArray::elements) | |
//! | one element | [`get_element`](GlobalArray::get_element), [`put_element`](GlobalArray::put_element) | |
//! | one integer, as one step | [`read_increment`](GlobalArray::read_increment), [`swap_element`](GlobalArray::swap_element), [`compare_swap_element`](GlobalArray::compare_swap_element) | |
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use armci_core::World;
//! use global_arrays::GlobalArray;
//! use ndarray::{Array2, s};
//!
//! let world = World::init()?;
//! let a = GlobalArray::<f64>::create(&world, "a", [60, 60])?;
//! let tasks = GlobalArray::<i64, _>::create(&world, "next task", 1)?;
//! // Whoever is free takes the next block of rows.
//! while let task @ 0..6 = tasks.read_increment([0], 1)? as usize {
//!     let rows = 10 * task..10 * task + 10;
//!     a.put([rows.clone(), 0..60], &Array2::from_elem((10, 60), task as f64))?;
//!     // What was put is on its way back, while something else may be done.
//!     let block = a.get_nb([rows, 0..60])?;
//!     assert_eq!(block.wait()?.sum(), 600.0 * task as f64);
//! }
//! a.sync()?;
//! // Every second column of a row, and three elements from anywhere.
//! assert_eq!(a.get(s![59, ..;2])?.sum(), 5.0 * 30.0);
//! assert_eq!(a.gather(&[[59, 0], [0, 59], [25, 7]])?.to_vec(), [5.0, 0.0, 2.0]);
//! a.sync()?;
//! tasks.destroy()?;
//! a.destroy()?;
//! world.finalize()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Locality
//! Work goes where the data are: [`GlobalArray::owner`] and [`GlobalArray::owners`] say whose an element and the parts of
//! a patch are, [`GlobalArray::blocks_on`] what a rank has, [`GlobalArray::distribution`] all else. Every rank changes
//! its own elements in place by [`GlobalArray::map_inplace`] and [`GlobalArray::indexed_map_inplace`], and copies its
//! block by [`GlobalArray::read_local`]; both are safe. `ndarray` views of the blocks themselves, of this rank and of
//! those on its node ([`GlobalArray::local_view_mut`], [`GlobalArray::views_on`]), are for programs that synchronise before
//! and after: they are what `NGA_Access` gives, and the end of their lives is `NGA_Release` and `NGA_Release_update`.
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use armci_core::World;
//! # use global_arrays::GlobalArray;
//! # use ndarray::s;
//! let world = World::init()?;
//! let a = GlobalArray::<f64>::create(&world, "a", [60, 40])?;
//! a.indexed_map_inplace(|(row, col), value| *value = (row + col) as f64)?;
//! // Each rank sums what it has, and only that.
//! let mut sum = [a.read_local()?.sum()];
//! a.group().all_reduce(&mut sum, armci_core::Reduce::Sum)?;
//! assert_eq!(sum, [60.0 * 40.0 * (59.0 + 39.0) / 2.0]);
//! for (rank, part) in a.owners(s![10..20, ..])? {
//!     assert_eq!(a.owner([part.range(0).start, part.range(1).start])?, rank);
//! }
//! a.destroy()?;
//! world.finalize()?;
//! # Ok(())
//! # }
//! ```
//! What lies beyond the end of an axis is at its other end for [`GlobalArray::periodic_get`], [`GlobalArray::periodic_put`]
//! and [`GlobalArray::periodic_accumulate`], whose ranges may leave the array: `[-1..3, 58..62]`.
//!
//! # Ghost cells
//! A block can have room around it for copies of the elements beside it. [`GlobalArray::update_ghosts`] fetches them from
//! whoever owns them, corners too, and around the ends of periodic axes; [`GlobalArray::update_ghosts_while`] lets
//! the rank work meanwhile, [`GlobalArray::update_ghosts_along`] does one side. At creation they are filled as the array is.
//! Cells beyond the ends of other axes keep what they hold until the program changes it: that is where boundary values go.
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use armci_core::World;
//! # use global_arrays::GlobalArray;
//! use ndarray::{Ix1, s};
//!
//! let world = World::init()?;
//! let heat = GlobalArray::<f64, Ix1>::builder(&world, "heat", 100).ghosts(&[1]).periodic(&[true]).create()?;
//! heat.indexed_map_inplace(|at, value| *value = if at < 50 { 1.0 } else { 0.0 })?;
//! for _ in 0..20 {
//!     heat.update_ghosts()?;
//!     let cells = heat.ghost_block()?;
//!     if let Some(mine) = heat.block_on(world.rank()).filter(|block| !block.is_empty()) {
//!         let next = (&cells.slice(s![..-2]) + &cells.slice(s![1..-1]) + cells.slice(s![2..])) / 3.0;
//!         heat.put(mine, &next)?;
//!     }
//! }
//! heat.sync()?;
//! assert!((heat.get(..)?.sum() - 50.0).abs() < 1e-9);
//! heat.destroy()?;
//! world.finalize()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Mathematics on arrays and patches
//! What all ranks do together, each on what it owns: methods of arrays, and of patches ([`GlobalArray::slice`]). The
//! array that is changed comes first; operands are arrays or patches of the same shape, in whatever distribution, and may
//! be what is changed. All ranks of the group call, and when a call returns, all see what it did. Element-wise
//! arithmetic ([`GlobalSlice::add`], ...) is one-liners over [`GlobalSlice::combine`], which takes any function.
//! Copies, also between groups and shapes, transposes, reductions, diagonals and scans: [`math`] lists them all, by their
//! names in Global Arrays.
//! ```
//! use global_arrays::GlobalArray;
//! use ndarray::{Ix1, s};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let world = armci_core::World::init()?;
//! let a = GlobalArray::<f64>::create(&world, "a", [4, 4])?;
//! a.enumerate(0.0, 1.0)?; // 0, 1, 2, ... row by row
//! let b = a.duplicate("b")?;
//! b.transpose_from(&a)?;
//! b.add(0.5, &a, 0.5, &b)?; // b = (a + b) / 2
//! a.symmetrize()?;
//! assert_eq!(a.dot(&b)?, b.dot(&b)?);
//! // The first two columns, times the last two.
//! b.slice(s![.., ..2])?.multiply(b.slice(s![.., ..2])?, a.slice(s![.., 2..])?)?;
//! b.combine(&b, &a, |x: f64, y: f64| x.hypot(y))?;
//! let diagonal = GlobalArray::<f64, Ix1>::create(&world, "diagonal", [4])?;
//! a.get_diagonal(&diagonal)?;
//! assert_eq!(diagonal.get(..)?.to_vec(), [0.0, 5.0, 10.0, 15.0]);
//! assert_eq!(a.select_max()?, Some(((3, 3), 15.0)));
//! # diagonal.destroy()?;
//! # b.destroy()?;
//! # a.destroy()?;
//! # world.finalize()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Linear algebra
//! [`GlobalArray::assign_product`] multiplies arrays, patches of them ([`GlobalSlice::assign_product`]), transposed
//! ([`GlobalArray::t`]) or adjoint ([`GlobalArray::h`]), of any distributions; and a matrix by a vector, where the
//! array has one dimension. Equations: [`GlobalArray::solve`], [`GlobalArray::lu_solve`], [`GlobalArray::cholesky_solve`], or,
//! to solve again and again with the same matrix, its factors: [`GlobalArray::lu`], [`GlobalArray::cholesky`].
//! The inverse of a positive definite matrix: [`GlobalArray::spd_invert`]. Eigenvalues and vectors:
//! [`GlobalArray::eigh`], [`GlobalArray::eigh_generalized`]. Numbers
//! are `f32`, `f64` or complex ([`Scalar`]).
//!
//! All ranks work on products and factors. The eigenproblem is solved by one, whose memory and time set the limit:
//! some 10,000 rows. Errors, such as a singular matrix, come to all ranks alike.
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use global_arrays::GlobalArray;
//! use ndarray::{arr1, arr2, s};
//!
//! let world = armci_core::World::init()?;
//! let make = |name| GlobalArray::<f64>::create(&world, name, [2, 2]);
//! let (a, b, c) = (make("a")?, make("b")?, make("c")?);
//! if world.rank() == 0 {
//!     a.put(.., &arr2(&[[2.0, 1.0], [1.0, 2.0]]))?;
//!     b.put(.., &arr2(&[[3.0, 5.0], [3.0, 4.0]]))?;
//! }
//! c.assign_product(1.0, &a, b.t(), 0.0)?;
//! assert_eq!(c.get(..)?, arr2(&[[11.0, 10.0], [13.0, 11.0]]));
//! // Column 0 of c = 2 a (row 1 of b) - 2 (column 0 of c).
//! c.slice(s![.., 0..1])?.assign_product(2.0, &a, b.slice(s![1..2, ..])?.t(), -2.0)?;
//! assert_eq!(c.get(s![.., 0])?.to_vec(), [-2.0, -4.0]);
//! // The x of a x = b, in the place of b.
//! a.solve(&b)?;
//! assert!((b.get(..)? - arr2(&[[1.0, 2.0], [1.0, 1.0]])).iter().all(|error| error.abs() < 1e-12));
//! let energies = a.eigh(&c)?;
//! assert!((energies - arr1(&[1.0, 3.0])).iter().all(|error| error.abs() < 1e-12));
//! # for array in [a, b, c] { array.destroy()?; }
//! # world.finalize()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Work
//! Ranks draw tasks from a [`SharedCounter`]: each of `counter.tasks(n)` is somebody's, once. [`Mutexes`] keep others out
//! while a guard lives. A [`Group`] is the ranks of an array, a counter or mutexes, with sync, broadcast, sums and other
//! reductions; groups are split off each other, and arrays live on any of them.
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use global_arrays::{GlobalArray, Group, Mutexes, Reduce, SharedCounter, World};
//! use ndarray::{Array1, s};
//!
//! let world = World::init()?;
//! // The ranks in halves: each has an array, a counter and a mutex of its own.
//! let half = Group::from(&world).split(Some((world.rank() * 2 / world.size()) as i64), 0)?.expect("a half");
//! let squares = GlobalArray::<f64>::create(&half, "squares", [100, 4])?;
//! let counter = SharedCounter::create(&half)?;
//! let mutexes = Mutexes::create(&half, 1)?;
//! for task in counter.tasks(100).in_chunks(5) {
//!     let task = task?; // an error ends the loop
//!     squares.put(s![task, ..], &Array1::from_elem(4, (task * task) as f64))?;
//! }
//! {
//!     let _guard = mutexes.guard(0, 0)?;
//!     let seen = squares.get_element([0, 0])?;
//!     squares.put_element([0, 0], seen + 1.0)?;
//! } // complete, and unlocked
//! squares.sync()?;
//! assert_eq!(squares.get_element([0, 0])?, half.size() as f64);
//! let mut largest = [squares.get(..)?.sum()];
//! squares.group().all_reduce(&mut largest, Reduce::Max)?;
//! counter.reset()?; // before another loop; collective, as all these are
//! mutexes.destroy()?;
//! counter.destroy()?;
//! squares.destroy()?;
//! half.free()?;
//! world.finalize()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Looking at arrays, and keeping them
//! [`GlobalArray::print`] and [`GlobalArray::write_to`] write elements as text, [`GlobalArray::summary`] the array in a
//! line; a [`Distribution`] says in words who owns what. [`GlobalArray::save`] writes a `.npy` file, which
//! `numpy.load` opens, and [`GlobalArray::load`] reads one, of NumPy's too; all ranks take part.
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use global_arrays::{GlobalArray, World};
//! use ndarray::{Ix3, s};
//!
//! let world = World::init()?;
//! let a = GlobalArray::<f64, Ix3>::builder(&world, "field", [20, 30, 3]).filled(0.5).create()?;
//! a.slice(s![0..2, 0..5, ..])?.print()?;
//! if world.rank() == 0 {
//!     println!("{}\n{}", a.summary(), a.distribution());
//! }
//! let file = std::env::temp_dir().join(format!("field-{}.npy", std::process::id()));
//! a.save(&file)?;
//! let b = GlobalArray::<f64, Ix3>::load(&world, "again", &file)?;
//! let c = GlobalArray::<f64, Ix3>::builder(&world, "in blocks", [20, 30, 3]).block_cyclic(&[4, 4, 3]).create()?;
//! c.load_from(&file)?;
//! assert_eq!(b.get(..)?, c.get(..)?);
//! # std::fs::remove_file(&file)?;
//! for array in [a, b, c] {
//!     array.destroy()?;
//! }
//! world.finalize()?;
//! # Ok(())
//! # }
//! ```
//!
//! # For users of Global Arrays
//! `docs/global-arrays-compared.md` in the repository shows one program in Global Arrays' C and Fortran and here, what each
//! of their calls is called here, and what it does otherwise; `examples/ten_lines.rs` is that program.

mod access;
mod agree;
mod array;
mod axes;
mod create;
mod distribution;
mod elements;
mod error;
mod file;
mod ghosts;
pub mod linalg;
mod local;
mod locality;
pub mod math;
mod patch;
mod print;
mod select;
mod slice;
mod transfer;
mod word;
mod wrap;

// What programs with arrays use of the runtime, so that they need not name it.
pub use armci_core::{Group, MutexGuard, Mutexes, Number, Reduce, SharedCounter, Tasks, Team, World};
pub use array::GlobalArray;
pub use axes::{Axes, MAX_DIMS};
pub use create::Builder;
pub use distribution::Distribution;
pub use elements::{Elements, Indices};
pub use error::{Error, Result};
pub use ghosts::Side;
pub use linalg::{Cholesky, Lu, MatrixOperand, Scalar};
pub use math::{Element, Operand, Scan};
pub use patch::Patch;
pub use print::Layout;
pub use select::{Section, Select};
pub use slice::GlobalSlice;
pub use transfer::{PatchHandle, PatchScope, ScopedPatch, nonblocking};
pub use wrap::WrappingRanges;
