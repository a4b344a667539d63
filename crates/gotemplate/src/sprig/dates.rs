//! Dates.

use super::times::{TimeObject, as_time};
use super::{add, text};
use crate::{CallError, Context, Functions, Type, Value};
use tiphys_gocompat::strconv;
use tiphys_gocompat::time::{Duration, Time, Zone};

const ANY: &[Type] = &[Type::Any];
const TIME: Type = Type::Named("time.Time");

pub(super) fn register(functions: &mut Functions) {
    formatting(functions);
    changing(functions);
    durations(functions);
}

fn now(ctx: &Context<'_>) -> Time {
    Time::read(ctx.now(), local(ctx), ctx.monotonic())
}

fn local(ctx: &Context<'_>) -> Zone {
    Zone::Local(ctx.zone())
}

/// A date argument: a time, or seconds since 1970; everything else means now.
fn date_of(ctx: &Context<'_>, value: &Value) -> Time {
    match value {
        Value::Int(seconds) | Value::Int64(seconds) => Time::from_unix(*seconds, local(ctx)),
        other => as_time(other).cloned().unwrap_or_else(|| now(ctx)),
    }
}

fn in_zone(ctx: &Context<'_>, layout: &str, date: &Value, zone: &str) -> Value {
    let zone = Zone::load(zone, &ctx.zone()).unwrap_or(Zone::Utc);
    date_of(ctx, date).in_zone(zone).format(layout).into()
}

fn formatting(f: &mut Functions) {
    const DAY: &str = "2006-01-02";
    add(f, &["now"], &[], |ctx, _| Ok(TimeObject::value(now(ctx))));
    add(f, &["date"], &[Type::String, Type::Any], |ctx, args| {
        Ok(in_zone(ctx, text(args, 0), &args[1], "Local"))
    });
    add(f, &["dateInZone", "date_in_zone"], &[Type::String, Type::Any, Type::String], |ctx, args| {
        Ok(in_zone(ctx, text(args, 0), &args[1], text(args, 2)))
    });
    add(f, &["htmlDate"], ANY, |ctx, args| Ok(in_zone(ctx, DAY, &args[0], "Local")));
    add(f, &["htmlDateInZone"], &[Type::Any, Type::String], |ctx, args| {
        Ok(in_zone(ctx, DAY, &args[0], text(args, 1)))
    });
    add(f, &["unixEpoch"], &[TIME], |_, args| {
        Ok(as_time(&args[0]).map_or(0, |time| time.instant.as_second()).to_string().into())
    });
    add(f, &["toDate"], &[Type::String, Type::String], |ctx, args| {
        let parsed = Time::parse(text(args, 0), text(args, 1), &local(ctx));
        Ok(TimeObject::value(parsed.unwrap_or_else(|_| Time::zero())))
    });
    add(f, &["mustToDate"], &[Type::String, Type::String], |ctx, args| {
        match Time::parse(text(args, 0), text(args, 1), &local(ctx)) {
            Ok(time) => Ok(TimeObject::value(time)),
            Err(error) => Err(CallError::new(error.to_string())),
        }
    });
}

fn changing(f: &mut Functions) {
    const PARAMS: &[Type] = &[Type::String, TIME];
    let moved = |args: &[Value], duration: Duration| match as_time(&args[1]) {
        Some(time) => TimeObject::value(time.plus(duration)),
        None => args[1].clone(),
    };
    add(f, &["dateModify", "date_modify"], PARAMS, move |_, args| {
        Ok(Duration::parse(text(args, 0)).map_or_else(|_| args[1].clone(), |duration| moved(args, duration)))
    });
    add(f, &["mustDateModify", "must_date_modify"], PARAMS, move |_, args| {
        match Duration::parse(text(args, 0)) {
            Ok(duration) => Ok(moved(args, duration)),
            Err(error) => Err(CallError::new(error.to_string())),
        }
    });
}

fn durations(f: &mut Functions) {
    add(f, &["ago"], ANY, |ctx, args| {
        let date = date_of(ctx, &args[0]);
        Ok(now(ctx).since(&date).round(Duration::SECOND).to_string().into())
    });
    add(f, &["duration"], ANY, |_, args| {
        let seconds = match &args[0] {
            Value::Int64(seconds) => *seconds,
            Value::String(text) => match strconv::parse_int(text, 10) {
                Ok(seconds) => seconds,
                Err(strconv::NumError::Range) if text.starts_with('-') => i64::MIN,
                Err(strconv::NumError::Range) => i64::MAX,
                Err(strconv::NumError::Syntax) => 0,
            },
            _ => 0,
        };
        Ok(Duration(seconds.wrapping_mul(Duration::SECOND.0)).to_string().into())
    });
    add(f, &["durationRound"], ANY, |ctx, args| {
        let duration = match &args[0] {
            Value::Int64(nanos) => Duration(*nanos),
            Value::String(text) => Duration::parse(text).unwrap_or_default(),
            other => as_time(other).map_or(Duration(0), |time| now(ctx).since(time)),
        };
        Ok(rounded(duration).into())
    });
}

/// The largest unit that fits more than once, as Sprig counts them.
fn rounded(duration: Duration) -> String {
    const HOUR: u64 = 3_600_000_000_000;
    const UNITS: [(u64, &str); 6] = [
        (HOUR * 24 * 365, "y"),
        (HOUR * 24 * 30, "mo"),
        (HOUR * 24, "d"),
        (HOUR, "h"),
        (HOUR / 60, "m"),
        (HOUR / 3600, "s"),
    ];
    let nanos = duration.0.unsigned_abs();
    match UNITS.iter().find(|(unit, _)| nanos > *unit) {
        Some((unit, name)) => format!("{}{name}", nanos / unit),
        None => "0s".to_owned(),
    }
}
