//! Looking again and again.

use std::{io::IsTerminal as _, time::Duration};

use super::{Args, Output, View, cannot_look, input, written::Declarations};
use crate::{output, up::Signals};

/// How long it is until the next look.
const PAUSE: Duration = Duration::from_secs(30);

/// Looks until it is interrupted, and prints whenever causes, symptoms, or what can be seen have changed.
///
/// # Errors
/// There is no usable kubeconfig, or nobody reads what is printed. A cluster that does not answer for a while
/// is told of, and asked again.
pub(super) fn follow(args: &Args, declarations: Option<&Declarations>) -> anyhow::Result<()> {
    input::runtime()?.block_on(async {
        let mut signals = Signals::new()?;
        let mut before = None;
        loop {
            let look = input::live(&args.target, args.namespace.as_deref(), args.logs);
            let looked = tokio::select! {
                looked = look => looked,
                () = signals.wait() => return Ok(()),
            };
            match looked {
                Ok(state) => before = Some(show(args, &state, declarations, before)?),
                Err(error) if before.is_none() => return Err(cannot_look(error)),
                Err(error) => eprintln!("{}", cannot_look(error)),
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = signals.wait() => return Ok(()),
            }
        }
    })
}

/// Prints what is new. Returns what tells it from the next look.
fn show(
    args: &Args,
    state: &input::State,
    declarations: Option<&Declarations>,
    before: Option<Vec<String>>,
) -> anyhow::Result<Vec<String>> {
    let view = View::new(args, state, declarations);
    let now = view.report.identity();
    if before.as_ref() != Some(&now) {
        if args.output == Output::Text && std::io::stdout().is_terminal() {
            output::write(b"\x1b[2J\x1b[H")?;
        }
        output::write(view.text(args.output, state)?.as_bytes())?;
    }
    Ok(now)
}
