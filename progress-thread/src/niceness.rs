//! How much the calling thread goes before others, or gives way to them.
//!
//! Everybody may give way. To go before others takes a privilege, or a limit of the system's (`RLIMIT_NICE`); a thread that
//! sleeps most of the time is worth asking for it: fair schedulers let one that has just run wait for the next tick,
//! which may be 4 ms away, before it runs again beside a computation.

use std::io;

use rustix::process::{Resource, getpriority_process, getrlimit, setpriority_process};
use rustix::thread::gettid;

/// The niceness that stands for no limit, in the limit's own way of counting.
const UNLIMITED: u64 = 40;

/// Makes the calling thread as nice as asked; says how nice it is then. One that is to go before others does so as far as
/// the system allows, and not at all if it was told to give way before: whoever told it meant all of the process.
///
/// # Errors
/// If the system does not let it give way.
pub(crate) fn set(asked: i32) -> io::Result<i32> {
    // Linux keeps niceness per thread, and takes a thread's number for a process's.
    let me = Some(gettid());
    if asked >= 0 {
        setpriority_process(me, asked)?;
        return Ok(asked);
    }
    let now = getpriority_process(me).unwrap_or_default();
    if now > 0 {
        return Ok(now);
    }
    let allowed = 20 - getrlimit(Resource::Nice).current.unwrap_or(UNLIMITED).min(UNLIMITED) as i32;
    let wishes = [asked, asked.max(allowed)].map(|wish| wish.min(now));
    // However it is refused, nothing was lost.
    Ok(wishes.into_iter().find(|wish| setpriority_process(me, *wish).is_ok()).unwrap_or(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_its_own<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(run).join().unwrap()
    }

    #[test]
    fn going_before_others_is_a_wish() {
        let (said, is) = on_its_own(|| (set(-20).unwrap(), getpriority_process(Some(gettid())).unwrap()));
        assert_eq!(said, is);
        assert!((-20..=0).contains(&is), "{is}");
    }

    #[test]
    fn who_was_told_to_give_way_does() {
        assert_eq!(on_its_own(|| (set(7).unwrap(), set(-20).unwrap())), (7, 7));
    }
}
