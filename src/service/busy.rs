//! What is being worked on, so that nobody begins it twice. Whoever works holds a guard: the mark is gone with
//! it, however the work ends.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The keys of what is being worked on.
#[derive(Debug)]
pub(super) struct Busy<K: Ord>(Arc<Mutex<BTreeSet<K>>>);

impl<K: Ord> Default for Busy<K> {
    fn default() -> Busy<K> {
        Busy(Arc::default())
    }
}

impl<K: Ord + Clone> Busy<K> {
    /// The keys as they are now; nothing is marked or unmarked meanwhile.
    pub(super) fn keys(&self) -> MutexGuard<'_, BTreeSet<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks a key until the guard is dropped, which then calls `freed`.
    pub(super) fn mark(&self, key: K, freed: impl Fn() + Send + Sync + 'static) -> BusyMark<K> {
        self.keys().insert(key.clone());
        BusyMark { busy: Busy(Arc::clone(&self.0)), key, freed: Box::new(freed) }
    }
}

/// The mark of one key.
pub(super) struct BusyMark<K: Ord + Clone> {
    busy: Busy<K>,
    key: K,
    freed: Box<dyn Fn() + Send + Sync>,
}

impl<K: Ord + Clone> Drop for BusyMark<K> {
    fn drop(&mut self) {
        self.busy.keys().remove(&self.key);
        (self.freed)();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_mark_is_gone_with_its_guard_also_when_the_work_panics() {
        let busy = Busy::default();
        let rung = Arc::new(Mutex::new(0));
        let bell = Arc::clone(&rung);
        let mark = busy.mark(7, move || *bell.lock().unwrap() += 1);
        assert_eq!(busy.keys().len(), 1);
        let work = AssertUnwindSafe(|| {
            let _mark = mark;
            panic!("a fault");
        });
        assert!(catch_unwind(work).is_err());
        assert!(busy.keys().is_empty());
        assert_eq!(*rung.lock().unwrap(), 1);
    }
}
