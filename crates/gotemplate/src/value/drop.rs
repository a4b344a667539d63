//! Dropping deeply nested values without recursion.

use super::{Value, list, map};
use std::cell::RefCell;
use std::rc::Rc;

/// Moves the children of a value nobody else holds into the queue.
fn unpack(value: &mut Value, queue: &mut Vec<Value>) {
    match value {
        Value::Map(map) => {
            if let Some(inner) = Rc::get_mut(&mut map.0) {
                drain_entries(&mut inner.entries, queue);
            }
        }
        Value::List(list) => {
            if let Some(inner) = Rc::get_mut(&mut list.0) {
                drain_items(&mut inner.items, queue);
            }
        }
        _ => {}
    }
}

fn drain_entries(entries: &mut RefCell<Vec<super::Entry>>, queue: &mut Vec<Value>) {
    for entry in entries.get_mut().drain(..) {
        if entry.value.is_container() {
            queue.push(entry.value);
        }
    }
}

fn drain_items(items: &mut RefCell<Vec<Value>>, queue: &mut Vec<Value>) {
    queue.extend(items.get_mut().drain(..).filter(Value::is_container));
}

fn run(mut queue: Vec<Value>) {
    while let Some(mut value) = queue.pop() {
        unpack(&mut value, &mut queue);
    }
}

impl Drop for map::Inner {
    fn drop(&mut self) {
        if self.entries.get_mut().iter().any(|entry| entry.value.is_container()) {
            let mut queue = Vec::new();
            drain_entries(&mut self.entries, &mut queue);
            run(queue);
        }
    }
}

impl Drop for list::Inner {
    fn drop(&mut self) {
        if self.items.get_mut().iter().any(Value::is_container) {
            let mut queue = Vec::new();
            drain_items(&mut self.items, &mut queue);
            run(queue);
        }
    }
}
