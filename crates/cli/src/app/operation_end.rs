//! The end of an operation that was asked for.

use std::time::Duration;

use anyhow::bail;
use jiff::Timestamp;
use tiphys_model::{Application, NameValue, Operation, OperationPhase, has_null};
use tiphys_value::{Value, json};

use super::{
    session::{AppId, Session, put},
    view,
};
use crate::{
    exit::{Reported, WrongUse},
    output::{Format, print},
};

/// Name of the note by which a command knows its own operation again.
const NOTE: &str = "tiphys.dev/request";

/// Asks for an operation that is made from the present state of an Application. Returns the note that it
/// bears.
///
/// # Errors
/// An operation is under way already, it cannot be made, or the cluster does not answer.
pub(crate) async fn request(
    session: &Session,
    id: &AppId,
    make: impl Fn(&Application) -> anyhow::Result<Operation>,
) -> anyhow::Result<NameValue> {
    let note = NameValue { name: NOTE.into(), value: Timestamp::now().as_nanosecond().to_string() };
    session
        .change(id, |app, _| {
            if app.is_terminating() {
                return Err(WrongUse(format!("Application {id} is being deleted")).into());
            }
            // First what waiting would not mend.
            let mut operation = make(app)?;
            let state = app.status.operation_state.as_ref();
            if app.operation.is_some() || state.is_some_and(|state| !state.phase.is_completed()) {
                bail!(
                    "another operation of {id} is already in progress; `tiphys app wait {id} --operation` waits for it, `tiphys app terminate {id}` ends it"
                );
            }
            operation.info.push(note.clone());
            operation.initiated_by.username = user();
            let operation = json!(operation);
            Ok(match has_null(&operation) {
                true => json!([put("/operation", operation)]),
                false => json!({"operation": operation}),
            })
        })
        .await?;
    Ok(note)
}

/// Who runs this, for the record.
fn user() -> String {
    std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "tiphys-cli".into())
}

/// Waits for the end of an operation, telling on stderr what it does, and prints the result.
///
/// # Errors
/// It fails, does not end in time, or another one takes its place.
pub(crate) async fn follow(
    session: &Session,
    id: &AppId,
    note: &NameValue,
    patience: Duration,
    format: Format,
) -> anyhow::Result<()> {
    let mut told = String::new();
    let end = session
        .until(id, patience, |object| {
            let Some(object) = object else { return Some(None) };
            let app = Application::from_value(object).ok()?;
            let state = app.status.operation_state.as_ref()?;
            if !state.operation.info.contains(note) {
                return None;
            }
            if state.phase.is_completed() && app.operation.is_none() {
                return Some(Some(object.clone()));
            }
            let message = state.message.lines().next().unwrap_or_default();
            if !message.is_empty() && message != told {
                eprintln!("{}: {message}", app.metadata.name);
                message.clone_into(&mut told);
            }
            None
        })
        .await;
    match end {
        // The status was compared before the operation; a new look shows what it led to.
        Some(Some(ended)) => result(&session.refresh(id, false).await.unwrap_or(ended), format),
        Some(None) => bail!("Application {id} was deleted before its operation ended"),
        None => bail!(
            "the operation of {id} did not end within {}s; it goes on: {}",
            patience.as_secs(),
            if told.is_empty() { "no engine has taken it up; is one running?" } else { &told }
        ),
    }
}

fn result(object: &Value, format: Format) -> anyhow::Result<()> {
    let app = Application::from_value(object)?;
    let text = format!("{}\n{}", view::head(&app), view::resources(&app));
    print(format, &text, object)?;
    let phase = app.status.operation_state.as_ref().map(|state| state.phase);
    if phase.is_some_and(OperationPhase::is_successful) { Ok(()) } else { Err(Reported.into()) }
}
