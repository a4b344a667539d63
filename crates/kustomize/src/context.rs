//! What one build carries with it.

use std::sync::Arc;

use tiphys_value::Location;

use crate::{
    error::{Error, ErrorKind, Result},
    meter::Meter,
    options::BuildOptions,
    origins::Tracker,
    schema::Schemas,
};

/// The state of one build.
pub(crate) struct Context<'a> {
    pub options: &'a BuildOptions,
    pub tracker: Tracker,
    /// Schemas for merges and scopes; replaced by `openapi.path`.
    pub schemas: Arc<Schemas>,
    /// Whether a kustomization has chosen the schemas.
    pub schemas_chosen: bool,
    pub warnings: Vec<String>,
    /// What the transformer that runs has to say, without its place.
    pub notes: Vec<String>,
    /// Kustomization files read so far.
    pub kustomizations: usize,
    /// What was made so far.
    pub meter: Meter,
}

impl<'a> Context<'a> {
    /// The state at the start.
    pub(crate) fn new(options: &'a BuildOptions) -> Self {
        Self {
            options,
            tracker: Tracker::new(options.origins),
            schemas: Schemas::built_in(),
            schemas_chosen: false,
            warnings: Vec::new(),
            notes: Vec::new(),
            kustomizations: 0,
            meter: Meter::new(options.limits.memory, options.limits.time),
        }
    }

    /// Makes warnings of what a transformer had to say.
    pub(crate) fn take_notes(&mut self, place: &Location) {
        let notes = std::mem::take(&mut self.notes);
        self.warnings.extend(notes.into_iter().map(|note| format!("# Warning: {place}: {note}")));
    }

    /// Whether a part of the build that failed with this error is left out.
    pub(crate) fn may_skip(&self, error: &Error) -> bool {
        self.options.skips_faults && error.kind() != ErrorKind::Limit
    }

    /// Refuses more time than allowed.
    ///
    /// # Errors
    /// The limit, with the flag that raises it.
    pub(crate) fn check_time(&self) -> Result<()> {
        self.meter.check_time().map_err(|message| Error::new(ErrorKind::Limit, message))
    }

    /// Refuses more objects than allowed.
    ///
    /// # Errors
    /// The limit, named.
    pub(crate) fn check_objects(&self, count: usize) -> Result<()> {
        let limit = self.options.limits.objects;
        if count <= limit {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Limit, format!("more than {limit} objects")))
    }
}
