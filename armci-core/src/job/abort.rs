//! Giving up: how the end of one rank becomes the end of its job.
//!
//! A launcher ends a job whose rank leaves before its time, but each has its own idea of what it can see: one behind
//! a wrapper script sees only what the script returns. So whoever gives up says so first.

use std::fmt;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// How long a launcher has to take the request.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tells whatever started the job to end it; any thread may have one.
#[derive(Clone, Default)]
pub struct Aborter(Option<Arc<Request>>);

/// What asks a launcher to end the job with a code, and why.
type Request = dyn Fn(i32, &str) + Send + Sync;

impl Aborter {
    /// Asks by this.
    pub(super) fn new(request: impl Fn(i32, &str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(request)))
    }

    /// Asks for the end of the job, with this exit code. The launcher may end this process before it returns, which it does
    /// after a second at the latest: who gives up may be in no state to ask, and is to end all the same.
    ///
    /// Where the launcher watches its ranks itself, as ours does, and in a job of one, it does nothing: the caller is to end
    /// its process with the code, after this as before it.
    pub fn abort(&self, code: i32, reason: &str) {
        let Some(request) = self.0.clone() else { return };
        let reason = reason.to_owned();
        let (done, wait) = mpsc::channel();
        let ask = move || {
            request(code, &reason);
            // Nobody may be waiting any more.
            let _ = done.send(());
        };
        // Without another thread, the exit code must do.
        if thread::Builder::new().spawn(ask).is_ok() {
            let _ = wait.recv_timeout(PATIENCE);
        }
    }
}

impl fmt::Debug for Aborter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Aborter({})", if self.0.is_some() { "asks the launcher" } else { "does nothing" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_request_that_is_not_taken_holds_nobody_up() {
        Aborter::default().abort(1, "nobody hears it");
        let begin = Instant::now();
        Aborter::new(|_, _| thread::sleep(60 * PATIENCE)).abort(1, "nobody answers");
        assert!(begin.elapsed() < 30 * PATIENCE);
    }
}
