//! The boundary around other people's code that evaluates input of strangers: a panic in it becomes an error
//! of the object that was evaluated. Its state is thrown away, and nothing is printed.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    fmt,
    panic::{self, AssertUnwindSafe, PanicHookInfo},
    sync::Once,
};

/// A panic inside of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked {
    /// What was being done, such as `the CEL expression`.
    pub what: &'static str,
    /// What the library said, and where in its source.
    pub reason: String,
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, reason } = self;
        write!(f, "{what} cannot be evaluated: the library that does so failed ({reason}), a defect of it")
    }
}

impl std::error::Error for Panicked {}

thread_local! {
    /// How many guards are around what this thread does.
    static GUARDED: Cell<u32> = const { Cell::new(0) };
    static WHERE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs code of a library; what it has changed is not to be used after a panic.
///
/// # Errors
/// It panicked.
pub fn catch_panic<T>(what: &'static str, run: impl FnOnce() -> T) -> Result<T, Panicked> {
    keep_quiet();
    GUARDED.set(GUARDED.get() + 1);
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    GUARDED.set(GUARDED.get() - 1);
    result.map_err(|payload| {
        let place = WHERE.take();
        let said = message(payload.as_ref());
        // Another's panic payload may panic when it is dropped.
        std::mem::forget(payload);
        let reason = if place.is_empty() { said } else { format!("{said}, at {place}") };
        Panicked { what, reason }
    })
}

/// Has panics behind a guard noted in place of printed, once for the process.
fn keep_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let outer = panic::take_hook();
        panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            if GUARDED.get() == 0 {
                return outer(info);
            }
            let place = info.location().map(|place| {
                let file = place.file().rsplit(['/', '\\']).next().unwrap_or_default();
                format!("{file}:{}", place.line())
            });
            WHERE.set(place.unwrap_or_default());
        }));
    });
}

fn message(payload: &(dyn Any + Send)) -> String {
    const LONGEST: usize = 200;
    let said = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    said.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_names_what_and_where() {
        let error = catch_panic("the expression", || panic!("width {} is too large", 7)).unwrap_err();
        assert!(error.reason.starts_with("width 7 is too large, at panic_guard.rs:"), "{error:?}");
        assert!(error.to_string().starts_with("the expression cannot be evaluated"), "{error}");
        assert_eq!(catch_panic("the expression", || 1), Ok(1));
    }

    #[test]
    fn guards_within_guards_name_the_inner_one() {
        let outer = catch_panic("outer", || catch_panic("inner", || panic!("x")).unwrap_err().what);
        assert_eq!(outer, Ok("inner"));
    }
}
