//! What is wrong, what comes of it, and what would mend it.

use std::fmt::Write as _;

use tiphys_diag::sanitize;
use tiphys_stage::causes::{Cause, Repair};

use super::{
    super::{
        causes::hit_names,
        text::{short_name, some_of},
    },
    SHOWN, upper_first,
};

/// All causes, those that hit most first.
pub(super) fn write(causes: &[Cause], body: &mut String) {
    if causes.is_empty() {
        return;
    }
    let _ = writeln!(body, "<section aria-labelledby=\"why\">\n<h2 id=\"why\">Why</h2>");
    for (at, cause) in causes.iter().enumerate().take(SHOWN) {
        write_cause(at, cause, body);
    }
    if causes.len() > SHOWN {
        let _ = writeln!(body, "<details><summary>{} causes more</summary>", causes.len() - SHOWN);
        for (at, cause) in causes.iter().enumerate().skip(SHOWN) {
            write_cause(at, cause, body);
        }
        body.push_str("</details>\n");
    }
    body.push_str("</section>\n");
}

fn write_cause(at: usize, cause: &Cause, body: &mut String) {
    let _ = writeln!(
        body,
        "<article class=\"cause\" id=\"cause-{at}\">\n<p class=\"kind\"><span class=\"number\">{}</span>",
        at + 1
    );
    if let Some(mechanism) = &cause.mechanism {
        let _ = writeln!(body, "<code>{}</code> {}", mechanism.id, sanitize::html(mechanism.id.summary()));
    }
    let objects: Vec<String> = cause.objects.iter().map(short_name).collect();
    let state = if cause.state.is_empty() { String::new() } else { format!("{}: ", cause.state) };
    let _ = writeln!(
        body,
        "</p>\n<blockquote>{}</blockquote>\n<p>{}</p>",
        sanitize::html(&cause.text),
        sanitize::html(&format!("{state}{}", some_of(&objects, SHOWN)))
    );
    if !cause.places.is_empty() {
        let places: Vec<String> = cause.places.iter().take(SHOWN).map(|it| code(it)).collect();
        let _ = writeln!(body, "<p class=\"place\">written in {}</p>", places.join(", "));
    }
    let hits = hit_names(cause);
    if !hits.is_empty() {
        let _ = writeln!(body, "<p class=\"hits\">so not: {}</p>", sanitize::html(&hits.join("; ")));
    }
    if let Some(repair) = &cause.repair {
        write_repair(repair, body);
    }
    body.push_str("</article>\n");
}

/// A repair with what to write or to run.
pub(super) fn write_repair(repair: &Repair, body: &mut String) {
    let _ = write!(
        body,
        "<div class=\"repair\"><h3>The smallest repair</h3>\n<p>{}",
        sanitize::html(&upper_first(&repair.text))
    );
    if let Some(place) = &repair.place {
        let _ = write!(body, " <span class=\"place\">{}</span>", code(place));
    }
    body.push_str("</p>\n");
    for (label, text) in [("Patch", &repair.patch), ("Command", &repair.command)] {
        // What scrolls can be reached by the keyboard.
        if let Some(text) = text {
            let lines: Vec<String> = text.lines().map(sanitize::html).collect();
            let _ = writeln!(
                body,
                "<pre tabindex=\"0\" aria-label=\"{label}\"><code>{}</code></pre>",
                lines.join("\n")
            );
        }
    }
    body.push_str("</div>\n");
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", sanitize::html(text))
}
