//! Keeping arrays in files: NumPy's `.npy` format, written and read by all ranks at once.
//!
//! Guaranteed: a file is either as it was before or whole and new, since it is written beside its place and renamed at the
//! end; an error of one rank is an error of all, and the same; a rank needs one buffer of 4 MiB, whatever the array
//! has. Not guaranteed: what an array holds after a load into it that failed half-way.
//!
//! Ranks that do not run on one machine must see the same files under the same names.

mod npy;
mod share;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use armci_core::{Accumulate, Group};
use ndarray::{ArrayView, ArrayViewMut, Dimension};

use crate::agree::Outcome;
use crate::array::GlobalArray;
use crate::axes::{Axes, MAX_DIMS};
use crate::error::{Error, Result};
use crate::patch::Patch;
use npy::Header;
use share::Pieces;

impl<T: Accumulate, D: Dimension> GlobalArray<T, D> {
    /// Writes the array to a file that NumPy's `load` and other readers of `.npy` open, last axis contiguous; a file that was
    /// there is replaced. All ranks write, each its share. Collective; begins with a sync.
    ///
    /// # Errors
    /// [`Error::File`], on all ranks alike; the file that was there is as it was then.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let before = self.sync();
        let leads = self.group.rank() == 0;
        let begun = if leads { Some(Draft::begin::<T>(path, self.shape())) } else { None };
        let (draft, refused) = match begun {
            Some(Ok(draft)) => (Some(draft), Ok(())),
            Some(Err(error)) => (None, Err(error)),
            None => (None, Ok(())),
        };
        self.all_agree(path, refused)?;
        let place = tell_path(&self.group, draft.as_ref().map(|draft| draft.beside.as_path()));
        let place = place.map_err(|source| self.runtime(source))?;
        let data = npy::header(T::KIND, self.shape()).len() as u64;
        let written = self.all_agree(path, self.write_share(&place, data));
        let kept = draft.filter(|_| written.is_ok()).map_or(Ok(()), Draft::keep);
        let kept = self.all_agree(path, kept);
        before.and(written).and(kept)
    }

    /// Reads a file into the array, of any distribution: elements of its type, in its shape, in either order of axes.
    /// All ranks read, each its share. Collective; ends with a sync.
    ///
    /// # Errors
    /// [`Error::File`], on all ranks alike: if the file is no `.npy` file, has elements of another type or byte order or
    /// another shape, or is shorter than it says, the array is as it was; if it cannot be read to its end, the array's
    /// elements are some of the file's and some of its own.
    #[track_caller]
    pub fn load_from(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let before = self.sync();
        let found = Found::open::<T>(&self.group, self.name(), path)?;
        let filled = self.fill_from(path, &found);
        before.and(filled)
    }

    /// Creates an array of a file's shape, in regular blocks on a `&World`, `&Team` or `&Group`, and reads the file into it.
    /// Collective. For another distribution create the array and use [`GlobalArray::load_from`].
    ///
    /// # Errors
    /// As [`GlobalArray::load_from`] and [`GlobalArray::create`]; and if the file's array has not `D` dimensions.
    #[track_caller]
    pub fn load(group: impl Into<Group>, name: &str, path: impl AsRef<Path>) -> Result<Self> {
        let (group, path) = (group.into(), path.as_ref());
        let found = Found::open::<T>(&group, name, path)?;
        if let Some(dims) = D::NDIM.filter(|dims| *dims != found.shape.len()) {
            let why = format!("its array has {} dimensions, not {dims}", found.shape.len());
            return Err(file_error(name, path, 0, io::Error::new(ErrorKind::InvalidData, why)));
        }
        let array = Self::builder(&group, name, dim::<D>(&found.shape)).unfilled().create()?;
        match array.fill_from(path, &found) {
            Ok(()) => Ok(array),
            Err(error) => {
                array.destroy()?;
                Err(error)
            }
        }
    }

    fn write_share(&self, place: &Path, data: u64) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(place)?;
        let pieces = Pieces::new(self.shape(), size_of::<T>(), self.group.size());
        let mut buffer = Vec::<T>::new();
        for number in pieces.of(self.group.rank(), self.group.size()) {
            let (patch, first) = pieces.piece(number);
            buffer.resize(patch.len(), T::zeroed());
            let view = ArrayViewMut::from_shape(dim::<D>(&patch.shape()), &mut buffer[..]).map_err(io::Error::other)?;
            self.get_into(patch, view).map_err(io::Error::other)?;
            file.write_all_at(bytemuck::cast_slice(&buffer), data + (first * size_of::<T>()) as u64)?;
        }
        Ok(())
    }

    #[track_caller]
    fn fill_from(&self, path: &Path, found: &Found) -> Result<()> {
        if *found.shape != *self.shape() {
            let why = format!("its array has shape {:?}, not {:?}", found.shape, self.shape());
            return Err(file_error(self.name(), path, 0, io::Error::new(ErrorKind::InvalidData, why)));
        }
        let read = self.all_agree(path, self.read_share(found));
        self.sync().and(read)
    }

    fn read_share(&self, found: &Found) -> io::Result<()> {
        let file = File::open(&found.path)?;
        let dims = self.ndim();
        let reversed = |axes: &[usize]| Axes::from_fn(dims, |axis| axes[dims - 1 - axis]);
        // With the first axis contiguous, the file holds the transposed array with the last axis contiguous.
        let shape = if found.fortran { reversed(self.shape()) } else { found.shape };
        let pieces = Pieces::new(&shape, size_of::<T>(), self.group.size());
        let mut buffer = Vec::<T>::new();
        for number in pieces.of(self.group.rank(), self.group.size()) {
            let (patch, first) = pieces.piece(number);
            buffer.resize(patch.len(), T::zeroed());
            file.read_exact_at(bytemuck::cast_slice_mut(&mut buffer), found.data + (first * size_of::<T>()) as u64)?;
            let view = ArrayView::from_shape(dim::<D>(&patch.shape()), &buffer[..]).map_err(io::Error::other)?;
            let put = if found.fortran {
                let turned = Patch::from_fn(dims, |axis| patch.range(dims - 1 - axis));
                self.put(turned, view.reversed_axes())
            } else {
                self.put(patch, view)
            };
            put.map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Makes an error of one rank one of all.
    #[track_caller]
    fn all_agree(&self, path: &Path, done: io::Result<()>) -> Result<()> {
        let agreed = Outcome::of(done).agree(&self.group).map_err(|source| self.runtime(source))?;
        agreed.map_err(|(rank, source)| file_error(self.name(), path, rank, source))
    }
}

fn file_error(array: &str, path: &Path, rank: usize, source: io::Error) -> Error {
    Error::File { array: array.into(), path: path.into(), rank, source }
}

/// A shape, as `ndarray` has it.
fn dim<D: Dimension>(shape: &[usize]) -> D {
    let mut dim = D::zeros(shape.len());
    dim.slice_mut().copy_from_slice(shape);
    dim
}

/// Gives all ranks the first one's path. Collective.
#[track_caller]
fn tell_path(group: &Group, path: Option<&Path>) -> armci_core::Result<PathBuf> {
    let mut bytes = path.map(|path| path.as_os_str().as_bytes().to_vec()).unwrap_or_default();
    let mut len = [bytes.len() as u64];
    group.broadcast(0, &mut len)?;
    bytes.resize(len[0] as usize, 0);
    group.broadcast(0, &mut bytes)?;
    Ok(OsString::from_vec(bytes).into())
}

/// A file that is being written, beside its place; removed when dropped, unless it was kept.
struct Draft {
    file: File,
    beside: PathBuf,
    place: PathBuf,
}

impl Drop for Draft {
    fn drop(&mut self) {
        // (A draft that was kept has another name now.)
        let _ = fs::remove_file(&self.beside);
    }
}

impl Draft {
    fn begin<T: Accumulate>(path: &Path, shape: &[usize]) -> io::Result<Self> {
        // A link stays a link: what it leads to is replaced.
        let place = fs::canonicalize(path).or_else(|_| std::path::absolute(path))?;
        let old = fs::metadata(&place).ok();
        let name = place.file_name().filter(|_| old.as_ref().is_none_or(fs::Metadata::is_file));
        let name = name.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "there is something that is no file"))?;
        let (file, beside) = (0u32..)
            .find_map(|number| {
                let mut beside = OsString::from(".");
                beside.push(name);
                beside.push(format!(".{}-{number}.part", std::process::id()));
                let beside = place.with_file_name(beside);
                match OpenOptions::new().write(true).create_new(true).open(&beside) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => None,
                    opened => Some(opened.map(|file| (file, beside))),
                }
            })
            .ok_or(ErrorKind::AlreadyExists)??;
        let mut draft = Draft { file, beside, place };
        draft.prepare::<T>(shape, old)?;
        Ok(draft)
    }

    fn prepare<T: Accumulate>(&mut self, shape: &[usize], old: Option<fs::Metadata>) -> io::Result<()> {
        let header = npy::header(T::KIND, shape);
        self.file.write_all(&header)?;
        let elements: usize = shape.iter().product();
        self.file.set_len((header.len() + elements * size_of::<T>()) as u64)?;
        old.map_or(Ok(()), |old| self.file.set_permissions(old.permissions()))
    }

    /// Puts the file into its place, once it is on the disk.
    fn keep(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.beside, &self.place)
    }
}

/// A file whose header is known to all ranks.
struct Found {
    path: PathBuf,
    shape: Axes<usize>,
    fortran: bool,
    data: u64,
}

impl Found {
    /// Looks at a file on the first rank, and tells all what it is. Collective.
    #[track_caller]
    fn open<T: Accumulate>(group: &Group, array: &str, path: &Path) -> Result<Self> {
        let runtime = |source| Error::Runtime { array: array.into(), source };
        let looked = if group.rank() == 0 { Some(look::<T>(path)) } else { None };
        let (header, refused) = match looked {
            Some(Ok(header)) => (Some(header), Ok(())),
            Some(Err(error)) => (None, Err(error)),
            None => (None, Ok(())),
        };
        let agreed = Outcome::of(refused).agree(group).map_err(runtime)?;
        agreed.map_err(|(rank, source)| file_error(array, path, rank, source))?;
        // Dimensions, order, place of the elements, lengths.
        let mut told = [0u64; MAX_DIMS + 3];
        if let Some((_, header)) = &header {
            told[..3].copy_from_slice(&[header.shape.len() as u64, u64::from(header.fortran), header.data]);
            told[3..].iter_mut().zip(&header.shape).for_each(|(told, len)| *told = *len as u64);
        }
        group.broadcast(0, &mut told).map_err(runtime)?;
        let path = tell_path(group, header.as_ref().map(|(path, _)| path.as_path())).map_err(runtime)?;
        let [dims, fortran, data, lengths @ ..] = told;
        let shape = Axes::from_fn(dims as usize, |axis| lengths[axis] as usize);
        Ok(Found { path, shape, fortran: fortran != 0, data })
    }
}

/// The header of a file that holds an array of `T`, and its full name.
fn look<T: Accumulate>(path: &Path) -> io::Result<(PathBuf, Header)> {
    let path = std::path::absolute(path)?;
    let mut file = File::open(&path)?;
    let header = Header::read(&mut file)?;
    let bad = |why: String| io::Error::new(ErrorKind::InvalidData, why);
    let wanted = npy::descr(T::KIND);
    if header.descr != wanted {
        return Err(bad(format!("its elements are '{}', not '{wanted}'", header.descr)));
    }
    if !(1..=MAX_DIMS).contains(&header.shape.len()) {
        return Err(bad(format!("its array has {} dimensions: 1 to {MAX_DIMS} can be", header.shape.len())));
    }
    let elements = header.shape.iter().try_fold(size_of::<T>() as u64, |all, len| all.checked_mul(*len as u64));
    let needed = elements.and_then(|bytes| bytes.checked_add(header.data));
    let len = file.metadata()?.len();
    if needed.is_none_or(|needed| len < needed) {
        let why = format!("it is cut off: an array of shape {:?} does not fit into {len} bytes", header.shape);
        return Err(io::Error::new(ErrorKind::UnexpectedEof, why));
    }
    Ok((path, header))
}
