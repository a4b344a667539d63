//! What a build makes, counted. One operation of a patch may copy a part of an object into itself, and sixty
//! of them are more than any memory holds; a few kilobytes of names, values or patches may be meant for every
//! object there is.

use std::cell::Cell;

use tiphys_value::RenderLimits;

use crate::{
    error::{Error, ErrorKind},
    node::{Content, MAX_DEPTH, Node},
};

/// What a node takes beside its text, in bytes, about.
const NODE: usize = 64;

/// Counts the bytes that a build makes, whether they are still used or not.
#[derive(Debug)]
pub(crate) struct Meter {
    limit: u64,
    made: Cell<u64>,
}

impl Meter {
    /// A meter that refuses more than `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, made: Cell::new(0) }
    }

    /// Counts bytes.
    ///
    /// # Errors
    /// They are too many.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), String> {
        let made = self.made.get().saturating_add(bytes as u64);
        self.made.set(made);
        if made > self.limit {
            let [flag, ..] = RenderLimits::FLAGS;
            return Err(format!(
                "the build makes more than {} MiB; {flag} raises the limit",
                self.limit >> 20
            ));
        }
        Ok(())
    }

    /// Counts a node that is put below others, so many steps from the root.
    ///
    /// # Errors
    /// It is too large, or its end is too deep.
    pub(crate) fn take_node(&self, node: &Node, steps: usize) -> Result<(), String> {
        self.take(weigh(node, steps)?)
    }

    /// The limit as the error of a build.
    ///
    /// # Errors
    /// Always that of [`Self::take`], if it is one.
    pub(crate) fn check(&self, bytes: usize) -> Result<(), Error> {
        self.take(bytes).map_err(|message| Error::new(ErrorKind::Limit, message))
    }
}

/// The bytes that a node takes, about; its texts count as if they were not shared, as in what is printed.
///
/// # Errors
/// It is nested too deeply.
fn weigh(node: &Node, depth: usize) -> Result<usize, String> {
    if depth > MAX_DEPTH {
        return Err(format!("exceeded max depth of {MAX_DEPTH}"));
    }
    let below = match &node.content {
        Content::Scalar(text) => text.len(),
        Content::Map(pairs) => {
            let pair = |(key, value): &(Node, Node)| Ok(weigh(key, depth + 1)? + weigh(value, depth + 1)?);
            pairs.iter().map(pair).sum::<Result<usize, String>>()?
        }
        Content::Seq(items) => {
            items.iter().map(|item| weigh(item, depth + 1)).sum::<Result<usize, String>>()?
        }
    };
    Ok(NODE + below)
}

/// Refuses paths with more steps than an object may have levels.
///
/// # Errors
/// The limit, named.
pub(crate) fn check_steps(steps: usize) -> Result<(), String> {
    match steps > MAX_DEPTH {
        true => Err(format!("a path of {steps} steps exceeds the max depth of {MAX_DEPTH}")),
        false => Ok(()),
    }
}
