//! Arrays in files and as text, against `ndarray` and against another implementation of the file format.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use armci_core::World;
use global_arrays::{Error, GlobalArray, Layout};
use ndarray::{Array, Array2, ArrayD, Dimension, Ix1, Ix2, Ix3, IxDyn, ShapeBuilder};
use ndarray_npy::{ReadNpyExt, WriteNpyExt};
use num_complex::{Complex32, Complex64};
use tests::{Ranks, for_each, spread};

/// A directory that the ranks of a job share, and the first removes. Collective.
struct Place(PathBuf, World);

impl Place {
    fn new(world: &World) -> Self {
        let mut number = [u64::from(std::process::id())];
        world.broadcast(0, &mut number).unwrap();
        let path = std::env::temp_dir().join(format!("arrays-{}-{}", number[0], world.size()));
        if world.rank() == 0 {
            fs::create_dir_all(&path).unwrap();
        }
        world.barrier().unwrap();
        Place(path, world.clone())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What lies there.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn remove(self) {
        self.1.barrier().unwrap();
        if self.1.rank() == 0 {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }
}

macro_rules! there_and_back {
    ($world:expr, $place:expr, $random:expr, $($element:ty: $make:expr),*) => {$({
        for dims in 1..=4 {
            let shape = spread::shape::<IxDyn>(dims, [0, 90, 30, 9, 6][dims], $random);
            let make: fn(i64) -> $element = $make;
            let plain = ArrayD::from_shape_simple_fn(shape.clone(), || make($random.i64(-9999..9999)));
            let array = spread::array::<$element, IxDyn>($world, "a", shape.clone(), $random);
            let path = $place.at("a.npy");
            if $world.rank() == 0 {
                array.put(.., &plain).unwrap();
            }
            array.save(&path).unwrap();
            assert_eq!(ArrayD::<$element>::read_npy(File::open(&path).unwrap()).unwrap(), plain);
            let other = spread::array::<$element, IxDyn>($world, "b", shape.clone(), $random);
            other.load_from(&path).unwrap();
            assert_eq!(other.get(..).unwrap(), plain, "{:?}", other.distribution());
            let new = GlobalArray::<$element, IxDyn>::load($world, "c", &path).unwrap();
            assert_eq!(new.get(..).unwrap(), plain);
            $world.barrier().unwrap();
            // In the other order of axes, as another program writes it.
            let turned = Array::from_shape_fn(shape.clone().f(), |index| plain[index]);
            if $world.rank() == 0 {
                turned.write_npy(File::create(&path).unwrap()).unwrap();
            }
            $world.barrier().unwrap();
            other.fill(make(7)).unwrap();
            other.load_from(&path).unwrap();
            assert_eq!(other.get(..).unwrap(), plain, "first axis contiguous");
            array.destroy().unwrap();
            other.destroy().unwrap();
            new.destroy().unwrap();
        }
    })*};
}

#[test]
fn files_hold_what_others_read_and_write() {
    for_each(1..=5, |world| {
        let place = Place::new(world);
        let mut random = fastrand::Rng::with_seed(world.size() as u64);
        there_and_back!(world, place, &mut random,
            f64: |x| x as f64 / 7.0, f32: |x| x as f32 / 7.0, i32: |x| x as i32, i64: |x| x << 40,
            Complex32: |x| Complex32::new(x as f32, 0.5), Complex64: |x| Complex64::new(0.1, x as f64));
        assert_eq!(place.names(), ["a.npy"], "nothing is left beside it");
        place.remove();
    });
}

#[test]
fn large_arrays_go_in_many_pieces() {
    for protocol in ["rma", "am"] {
        Ranks::new(3).env("ARMCI_PROTOCOL", protocol).run(|world| {
            let place = Place::new(world);
            let path = place.at("large.npy");
            let plain = Array2::from_shape_fn((1200, 1300), |(row, col)| (row * 10_000 + col) as f64);
            let array =
                GlobalArray::<f64>::builder(world, "large", [1200, 1300]).block_cyclic(&[70, 33]).create().unwrap();
            if world.rank() == 1 {
                array.put(.., &plain).unwrap();
            }
            array.save(&path).unwrap();
            assert_eq!(Array2::<f64>::read_npy(File::open(&path).unwrap()).unwrap(), plain);
            let back = GlobalArray::<f64>::load(world, "back", &path).unwrap();
            assert_eq!(back.get(..).unwrap(), plain);
            back.destroy().unwrap();
            array.destroy().unwrap();
            place.remove();
        });
    }
}

/// What loading says, the same on all ranks; the array is as it was.
fn refused<D: Dimension>(array: &GlobalArray<f64, D>, path: &Path, about: &str) {
    let error = array.load_from(path).unwrap_err();
    let text = error.to_string();
    assert!(matches!(&error, Error::File { rank: 0, .. }), "{text}");
    for part in [about, array.name(), path.file_name().unwrap().to_str().unwrap()] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(array.get(..).unwrap().iter().all(|value| *value == 3.0));
    array.sync().unwrap();
}

#[test]
fn wrong_files_are_errors_that_say_why() {
    for_each(1..=3, |world| {
        let place = Place::new(world);
        let path = place.at("wrong.npy");
        let array = GlobalArray::<f64>::builder(world, "mine", [4, 5]).filled(3.0).create().unwrap();
        refused(&array, &path, "No such file");
        let write = |bytes: &[u8]| {
            world.barrier().unwrap();
            if world.rank() == 0 {
                fs::write(&path, bytes).unwrap();
            }
            world.barrier().unwrap();
        };
        let npy = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            write(&mut bytes);
            bytes
        };
        write(b"");
        refused(&array, &path, "no .npy file");
        write(b"PK\x03\x04 and more of it, as an archive has");
        refused(&array, &path, "no .npy file");
        write(&npy(&|out| Array2::<f32>::zeros((4, 5)).write_npy(out).unwrap()));
        refused(&array, &path, "'<f4', not '<f8'");
        write(&npy(&|out| Array2::<f64>::zeros((5, 4)).write_npy(out).unwrap()));
        refused(&array, &path, "[5, 4], not [4, 5]");
        write(&npy(&|out| Array::<f64, _>::zeros((4, 5, 1)).write_npy(out).unwrap()));
        refused(&array, &path, "[4, 5, 1], not [4, 5]");
        let loaded = GlobalArray::<f64, Ix2>::load(world, "mine", &path);
        assert!(matches!(loaded, Err(Error::File { .. })));
        let good = npy(&|out| Array2::<f64>::zeros((4, 5)).write_npy(out).unwrap());
        write(&good[..good.len() - 1]);
        refused(&array, &path, "cut off");
        write(&String::from_utf8_lossy(&good).replace("<f8", ">f8").replace('\u{fffd}', "?").into_bytes());
        refused(&array, &path, "no .npy file");
        let mut swapped = good.clone();
        let at = swapped.windows(3).position(|three| three == b"<f8").unwrap();
        swapped[at] = b'>';
        write(&swapped);
        refused(&array, &path, "'>f8', not '<f8'");
        let cube = GlobalArray::<f64, Ix3>::builder(world, "cube", [1, 4, 5]).filled(3.0).create().unwrap();
        write(&good);
        refused(&cube, &path, "[4, 5], not [1, 4, 5]");
        array.load_from(&path).unwrap();
        assert_eq!(array.get(..).unwrap().sum(), 0.0);
        cube.destroy().unwrap();
        array.destroy().unwrap();
        place.remove();
    });
}

#[test]
fn a_file_that_cannot_be_written_stays_as_it_was() {
    for_each(1..=3, |world| {
        let place = Place::new(world);
        let path = place.at("kept.npy");
        let array = GlobalArray::<f64>::builder(world, "a", [300, 100]).filled(1.0).create().unwrap();
        let failed = |array: &GlobalArray<f64>, path: &Path, culprit: usize| {
            let error = array.save(path).unwrap_err();
            assert!(matches!(error, Error::File { rank, .. } if rank == culprit), "{error}");
        };
        failed(&array, &place.at("no/such/directory.npy"), 0);
        failed(&array, &place.0, 0);
        // A pipe is not to be replaced by a file.
        let pipe = place.at("pipe");
        if world.rank() == 0 {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        }
        world.barrier().unwrap();
        failed(&array, &pipe, 0);
        if world.rank() == 0 {
            fs::remove_file(&pipe).unwrap();
        }
        array.save(&path).unwrap();
        let before = fs::read(&path).unwrap();
        world.barrier().unwrap();
        array.fill(2.0).unwrap();

        // One rank alone cannot open files.
        let culprit = world.size() - 1;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let to = |current| {
            if world.rank() == culprit {
                let limit = rustix::process::Rlimit { current, ..limit };
                rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
            }
        };
        // No more than it has: with fewer, what waits by `poll` could not ask for all that it waits for.
        let next = File::open(&path).unwrap().as_raw_fd();
        to(u64::try_from(next).ok());
        let saved = array.save(&path).map_err(|error| error.to_string());
        let loaded = array.load_from(&path).map_err(|error| error.to_string());
        to(limit.current);
        for error in [saved, loaded] {
            let error = error.unwrap_err();
            assert!(error.contains(&format!("on rank {culprit}: Too many open files")), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(place.names(), ["kept.npy"], "the draft is gone");
        world.barrier().unwrap();

        array.fill(2.0).unwrap();
        array.save(&path).unwrap();
        assert_eq!(Array2::<f64>::read_npy(File::open(&path).unwrap()).unwrap(), Array2::from_elem((300, 100), 2.0));
        array.destroy().unwrap();
        place.remove();
    });
}

#[test]
fn a_link_stays_and_so_do_permissions() {
    use std::os::unix::fs::PermissionsExt;
    for_each([2], |world| {
        let place = Place::new(world);
        let (real, link) = (place.at("real.npy"), place.at("link.npy"));
        if world.rank() == 0 {
            fs::write(&real, "old").unwrap();
            fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
            std::os::unix::fs::symlink("real.npy", &link).unwrap();
        }
        let array = GlobalArray::<i32, Ix1>::create(world, "a", [5]).unwrap();
        array.save(&link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(Array::<i32, Ix1>::read_npy(File::open(&real).unwrap()).unwrap().len(), 5);
        array.destroy().unwrap();
        place.remove();
    });
}

/// The numbers in a text, line by line, without the indices at the left.
fn numbers(text: &str, labelled: bool) -> Vec<Vec<f64>> {
    let rows = text.lines().skip(2).map(|line| {
        let words = line.split_whitespace().skip(usize::from(labelled));
        words.map(|word| word.parse().unwrap_or(f64::NAN)).collect()
    });
    rows.collect()
}

#[test]
fn text_holds_every_element_in_its_place() {
    for_each(1..=4, |world| {
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..6 {
            let shape = spread::shape::<Ix2>(2, 40, &mut random);
            let array = spread::array::<f64, Ix2>(world, "table", shape, &mut random);
            let plain = Array2::from_shape_simple_fn(shape, || f64::from(random.i32(-99_999..99_999)) / 8.0);
            if world.rank() == 0 {
                array.put(.., &plain).unwrap();
            }
            let mut out = Vec::new();
            array.write_to(&mut out, Layout { digits: 3, ..Layout::all() }).unwrap();
            let text = String::from_utf8(out).unwrap();
            if world.rank() == 0 && !plain.is_empty() {
                let found = numbers(&text, true).concat();
                assert_eq!(Array2::from_shape_vec(shape, found).unwrap(), plain, "{text}");
                let widths: Vec<_> = text.lines().skip(1).map(str::len).collect();
                assert!(widths.windows(2).all(|pair| pair[0] == pair[1]), "rows are in line\n{text}");
            } else if world.rank() > 0 {
                assert_eq!(text, "");
            }
            array.destroy().unwrap();
        }
    });
}

#[test]
fn text_is_laid_out_for_people() {
    for_each([2], |world| {
        let array = GlobalArray::<i64>::create(world, "counts", [20, 12]).unwrap();
        if world.rank() == 0 {
            array.put(.., &Array2::from_shape_fn((20, 12), |(row, col)| (row * 100 + col) as i64)).unwrap();
        }
        let print = |patch: global_arrays::Patch, layout: Layout| {
            let mut out = Vec::new();
            array.slice(patch).unwrap().write_to(&mut out, layout).unwrap();
            String::from_utf8(out).unwrap()
        };
        let text = print([3..20, 0..12].into(), Layout { ends: Some(2), ..Layout::default() });
        let wanted = "\
[3..20, 0..12] of 'counts': i64 [20, 12] in [2, 1] blocks on 2 ranks, 1920 bytes
        0     1  ...    10    11
  3   300   301  ...   310   311
  4   400   401  ...   410   411
...
 18  1800  1801  ...  1810  1811
 19  1900  1901  ...  1910  1911
";
        assert_eq!(text, if world.rank() == 0 { wanted } else { "" });
        array.destroy().unwrap();

        let cube = GlobalArray::<Complex64, Ix3>::builder(world, "cube", [2, 1, 2]).filled(Complex64::new(0.5, -1.0));
        let cube = cube.create().unwrap();
        let mut out = Vec::new();
        cube.write_to(&mut out, Layout { digits: 1, exponent: true, ..Layout::all() }).unwrap();
        let wanted = "\
'cube': num_complex::Complex<f64> [2, 1, 2] in [1, 1, 2] blocks on 2 ranks, 64 bytes
[0, .., ..]
                 0              1
  0  5.0e-1-1.0e0i  5.0e-1-1.0e0i
[1, .., ..]
                 0              1
  0  5.0e-1-1.0e0i  5.0e-1-1.0e0i
";
        assert_eq!(String::from_utf8(out).unwrap(), if world.rank() == 0 { wanted } else { "" });
        cube.destroy().unwrap();

        let row = GlobalArray::<f64, Ix1>::create(world, "row", [30]).unwrap();
        row.print().unwrap();
        let mut out = Vec::new();
        row.write_to(&mut out, Layout { ends: Some(1), digits: 1, exponent: false }).unwrap();
        if world.rank() == 0 {
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), ["    0  ...   29", "  0.0  ...  0.0"]);
        }
        row.destroy().unwrap();
    });
}

#[test]
fn who_owns_what_is_said_in_words() {
    for_each([4], |world| {
        let array =
            GlobalArray::<f64>::builder(world, "a", [10, 6]).min_block(&[5, 3]).ghosts(&[1, 0]).create().unwrap();
        let wanted = "[10, 6] in [2, 2] blocks with [1, 0] ghost cells around\nrank 0: [0..5, 0..3]\nrank 1: [0..5, 3..6]\n\
                      rank 2: [5..10, 0..3]\nrank 3: [5..10, 3..6]";
        assert_eq!(array.distribution().to_string(), wanted);
        array.destroy().unwrap();
        let array = GlobalArray::<f64, Ix1>::builder(world, "a", [10]).block_cyclic(&[2]).create().unwrap();
        let wanted = "[10] in [5] blocks\nrank 0: [0..2] [8..10]\nrank 1: [2..4]\nrank 2: [4..6]\nrank 3: [6..8]";
        assert_eq!(array.distribution().to_string(), wanted);
        array.destroy().unwrap();
    });
}

/// A writer that has room for so many bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::Error::from_raw_os_error(28))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_output_is_an_error_on_all_ranks() {
    for_each(1..=3, |world| {
        let array = GlobalArray::<f64>::create(world, "a", [30, 30]).unwrap();
        let error = array.write_to(&mut Full(500), Layout::all()).unwrap_err();
        assert!(matches!(&error, Error::Output { source, .. } if source.raw_os_error() == Some(28)), "{error}");
        array.write_to(&mut Full(1 << 20), Layout::all()).unwrap();
        array.destroy().unwrap();
    });
}
