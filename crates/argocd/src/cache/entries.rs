//! What API servers put into the cache themselves.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

/// Most bytes of all values and keys.
const ROOM: usize = 64 << 20;

/// Values by keys, some of them until a time.
#[derive(Default)]
pub(super) struct Entries {
    values: HashMap<String, (Vec<u8>, Option<Instant>)>,
    taken: usize,
}

impl Entries {
    pub(super) fn get(&self, key: &str) -> Option<Vec<u8>> {
        let (value, until) = self.values.get(key)?;
        is_alive(*until).then(|| value.clone())
    }

    /// Puts a value in its place; `false` if it was to be put only where none is, and one is.
    ///
    /// # Errors
    /// There is no room for it.
    pub(super) fn set(
        &mut self,
        key: String,
        value: Vec<u8>,
        lifetime: Option<Duration>,
        if_absent: bool,
    ) -> Result<bool, String> {
        self.drop_dead();
        if if_absent && self.values.contains_key(&key) {
            return Ok(false);
        }
        self.remove(&key);
        let size = key.len() + value.len();
        if self.taken + size > ROOM {
            return Err("OOM command not allowed: the cache is full".to_owned());
        }
        self.taken += size;
        let until = lifetime.and_then(|lifetime| Instant::now().checked_add(lifetime));
        self.values.insert(key, (value, until));
        Ok(true)
    }

    /// Whether there was one.
    pub(super) fn remove(&mut self, key: &str) -> bool {
        let Some((value, until)) = self.values.remove(key) else { return false };
        self.taken -= key.len() + value.len();
        is_alive(until)
    }

    /// Whether there was one.
    pub(super) fn rename(&mut self, from: &str, to: String) -> bool {
        let Some((value, until)) = self.values.remove(from) else { return false };
        self.taken -= from.len() + value.len();
        self.remove(&to);
        self.taken += to.len() + value.len();
        self.values.insert(to, (value, until));
        is_alive(until)
    }

    fn drop_dead(&mut self) {
        let taken = &mut self.taken;
        self.values.retain(|key, (value, until)| {
            let stays = is_alive(*until);
            *taken -= if stays { 0 } else { key.len() + value.len() };
            stays
        });
    }
}

fn is_alive(until: Option<Instant>) -> bool {
    until.is_none_or(|until| Instant::now() < until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn values_live_as_long_as_they_are_given() {
        let mut entries = Entries::default();
        let minute = Some(Duration::from_secs(60));
        assert_eq!(entries.set("a".to_owned(), b"1".to_vec(), minute, false), Ok(true));
        assert_eq!(entries.set("a".to_owned(), b"2".to_vec(), None, true), Ok(false));
        assert_eq!(entries.get("a"), Some(b"1".to_vec()));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(entries.get("a"), None);
        assert_eq!(entries.set("a".to_owned(), b"2".to_vec(), None, true), Ok(true));
        assert!(entries.rename("a", "b".to_owned()) && !entries.rename("a", "c".to_owned()));
        assert!(entries.remove("b") && !entries.remove("b"));
        assert_eq!(entries.taken, 0);
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let mut entries = Entries::default();
        assert!(entries.set("a".to_owned(), vec![0; ROOM], None, false).is_err());
        assert_eq!(entries.get("a"), None);
        assert_eq!(entries.set("a".to_owned(), vec![0; 10], None, false), Ok(true));
    }
}
