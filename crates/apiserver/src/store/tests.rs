use serde_json::json;

use super::*;

fn write(store: &Store, resource: &ResourceId, key: &str, expect: Expect, data: &str) -> u64 {
    let value = json!({"metadata": {"name": key}, "data": data});
    let written = store.commit(Write { resource, key, expect, value, remove: false });
    written.expect("the expectation holds").revision()
}

#[test]
fn heavy_objects_leave_few_changes_behind_and_light_ones_many() {
    let store = Store::in_memory();
    let (heavy, light) = (ResourceId::new("", "heavy"), ResourceId::new("", "light"));
    let first = write(&store, &light, "a", Expect::Absent, "");
    let megabyte = "x".repeat(1 << 20);
    let mut newest = write(&store, &heavy, "b", Expect::Absent, &megabyte);
    let began = newest;
    for _ in 0..200 {
        newest = write(&store, &heavy, "b", Expect::Revision(newest), &megabyte);
    }
    let kept =
        |revision| store.changes_since(Some(&heavy), revision, usize::MAX).map(|changes| changes.len());
    assert!(kept(began).is_err(), "two hundred megabytes are not kept");
    assert_eq!(kept(newest - 25), Ok(25));
    assert!(
        store.changes_since(None, began, 1).is_err() && store.changes_since(None, newest - 25, 1).is_ok()
    );
    assert!(store.snapshot_at(began).is_none());
    assert_eq!(store.snapshot_at(newest - 25).map(|past| past.revision()), Some(newest - 25));
    // Who follows the light ones has seen theirs, and is not sent away for those of others.
    assert!(store.changes_since(Some(&light), first, 1).is_ok());
    let mut last = write(&store, &light, "c", Expect::Absent, "");
    for _ in 0..1000 {
        last = write(&store, &light, "c", Expect::Revision(last), "");
    }
    let changes = store.changes_since(Some(&light), last - 1000, usize::MAX);
    assert_eq!(changes.map(|changes| changes.len()), Ok(1000));
}

#[test]
fn of_the_heaviest_objects_some_changes_are_kept_all_the_same() {
    let store = Store::in_memory();
    let heavy = ResourceId::new("", "heavy");
    let text = "x".repeat(8 << 20);
    let mut newest = write(&store, &heavy, "b", Expect::Absent, &text);
    for _ in 0..40 {
        newest = write(&store, &heavy, "b", Expect::Revision(newest), &text);
    }
    assert!(store.changes_since(Some(&heavy), newest - 30, 1).is_ok());
    assert!(store.changes_since(Some(&heavy), newest - 40, 1).is_err());
}
