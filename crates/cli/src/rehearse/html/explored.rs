//! The ranking of faults as a page.

use std::fmt::Write as _;

use tiphys_diag::sanitize;

use super::{
    super::{
        report::{Exploration, Ranked},
        text::{ended, some_of, time},
    },
    banner, causes,
};

/// Title and content.
pub(super) fn body(exploration: &Exploration) -> (String, String) {
    let (lost, survived): (Vec<&Ranked>, Vec<&Ranked>) =
        exploration.ranking.iter().partition(|one| !one.is_survived);
    let all = exploration.ranking.len();
    let title = match lost.len() {
        0 => format!("every one of {all} single faults is survived"),
        count => format!("{count} of {all} single faults are not survived"),
    };
    let mut body = String::new();
    let chips = [
        ("without a fault", ended(&exploration.without_faults)),
        ("each fault lasts", time(exploration.lasts_ms)),
    ];
    banner(lost.is_empty(), "tiphys rehearse --explore", &title, &chips, &mut body);
    let longest = exploration.ranking.iter().map(|one| one.later_ms.max(one.unavailable_ms)).max();
    let longest = longest.unwrap_or_default().max(1);
    for (title, ranked) in [("Not survived", lost), ("Survived", survived)] {
        if ranked.is_empty() {
            continue;
        }
        let _ = writeln!(body, "<section>\n<h2>{title}</h2>");
        ranked.into_iter().for_each(|one| write(one, longest, &mut body));
        body.push_str("</section>\n");
    }
    if exploration.left_out > 0 {
        let _ =
            writeln!(body, "<p>{} faults were left out; --explore N takes more.</p>", exploration.left_out);
    }
    (title, body)
}

fn write(one: &Ranked, longest: u64, body: &mut String) {
    let is_green = one.is_survived;
    let class = if is_green { "good" } else { "bad" };
    let told = match (is_green, one.later_ms) {
        (true, 0) => "green as soon as without it".to_owned(),
        (true, later) => format!("green {} later", time(later)),
        (false, _) if one.ended.red.is_empty() => "a node cannot be drained".to_owned(),
        (false, _) => format!("not green: {}", some_of(&one.ended.red, 4)),
    };
    let width = |ms: u64| (ms * 100 / longest).min(100);
    let _ = writeln!(
        body,
        "<details class=\"ranked {class}\"><summary><code>{}</code> <span>{}</span>\
         <svg class=\"bars\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"later\" width=\"{}\" height=\"3\"/><rect class=\"away\" y=\"5\" width=\"{}\" height=\"3\"/></svg></summary>",
        sanitize::html(&one.fault),
        sanitize::html(&told),
        width(one.later_ms),
        width(one.unavailable_ms)
    );
    if one.unavailable_ms >= 1000 {
        let _ = writeln!(
            body,
            "<p>Something that was available is unavailable for {}.</p>",
            time(one.unavailable_ms)
        );
    }
    if !one.story.is_empty() {
        let lines: Vec<String> =
            one.story.iter().map(|line| format!("<li>{}</li>", sanitize::html(line))).collect();
        let _ = writeln!(body, "<ol class=\"story\">\n{}\n</ol>", lines.join("\n"));
    }
    if let Some(cause) = &one.cause {
        let _ = writeln!(body, "<blockquote>{}</blockquote>", sanitize::html(cause));
    }
    if let Some(repair) = &one.repair {
        causes::write_repair(repair, body);
    }
    body.push_str("</details>\n");
}
