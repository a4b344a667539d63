//! Go's times, durations, months and weekdays as objects with their methods.

use super::{fail, int, text};
use crate::{CallError, CallResult, Clock, Kind, Object, Signature, Type, Value};
use std::borrow::Cow;
use tiphys_gocompat::time::{Duration, Time, Zone};

const NONE: Signature = Signature::fixed(&[]);
const TIME: Type = Type::Named("time.Time");
const DURATION: Type = Type::Named("time.Duration");

/// A `time.Time`.
pub(super) struct TimeObject(Time);

/// The time in a value.
pub(super) fn as_time(value: &Value) -> Option<&Time> {
    match value {
        Value::Object(object) => object.downcast_ref::<TimeObject>().map(|object| &object.0),
        _ => None,
    }
}

fn as_duration(value: &Value) -> Duration {
    match value {
        Value::Object(object) => {
            object.downcast_ref::<DurationObject>().map_or(Duration(0), |object| object.0)
        }
        Value::Int64(nanos) => Duration(*nanos),
        _ => Duration(0),
    }
}

impl TimeObject {
    pub(super) fn value(time: Time) -> Value {
        Value::object(Self(time))
    }
}

impl Object for TimeObject {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed("time.Time")
    }

    fn method(&self, name: &str) -> Option<Signature> {
        Some(match name {
            "Format" => Signature::fixed(&[Type::String]),
            "Year" | "Month" | "Day" | "Hour" | "Minute" | "Second" | "Nanosecond" | "Weekday"
            | "YearDay" | "Unix" | "UnixMilli" | "UnixMicro" | "UnixNano" | "UTC" | "Local" | "String"
            | "IsZero" => NONE,
            "After" | "Before" | "Equal" | "Compare" | "Sub" => Signature::fixed(&[TIME]),
            "Add" | "Round" | "Truncate" => Signature::fixed(&[DURATION]),
            "AddDate" => Signature::fixed(&[Type::Int, Type::Int, Type::Int]),
            _ => return None,
        })
    }

    fn call(&self, clock: &dyn Clock, name: &str, args: &[Value]) -> CallResult {
        let time = &self.0;
        if let Some(other) = args.first().and_then(as_time) {
            return Ok(compare(time, other, name));
        }
        let civil = time.civil();
        Ok(match name {
            "Format" => time.format(text(args, 0)).into(),
            "String" => time.display().into(),
            "Year" => Value::Int(civil.year().into()),
            "Month" => NumberObject::value("time.Month", time.month()),
            "Weekday" => NumberObject::value("time.Weekday", time.weekday()),
            "Day" => Value::Int(civil.day().into()),
            "Hour" => Value::Int(civil.hour().into()),
            "Minute" => Value::Int(civil.minute().into()),
            "Second" => Value::Int(civil.second().into()),
            "Nanosecond" => Value::Int(civil.subsec_nanosecond().into()),
            "YearDay" => Value::Int(civil.day_of_year().into()),
            "Unix" => Value::Int64(time.instant.as_second()),
            "UnixMilli" => Value::Int64(time.instant.as_millisecond()),
            "UnixMicro" => Value::Int64(time.instant.as_microsecond()),
            "UnixNano" => Value::Int64(time.instant.as_nanosecond() as i64),
            "UTC" => Self::value(time.in_zone(Zone::Utc)),
            "Local" => Self::value(time.in_zone(Zone::Local(clock.zone()))),
            "IsZero" => time.is_zero().into(),
            "Add" => Self::value(time.plus(as_duration(&args[0]))),
            "AddDate" => match time.add_date(int(args, 0), int(args, 1), int(args, 2)) {
                Some(moved) => Self::value(moved),
                None => return fail("date out of range"),
            },
            _ => return Err(CallError::new(format!("time.Time.{name} is not supported"))),
        })
    }

    fn stringer(&self) -> Option<String> {
        Some(self.0.display())
    }

    fn go_string(&self) -> Option<String> {
        Some(self.0.go_string())
    }

    fn hidden_fields(&self) -> Vec<(&'static str, Value)> {
        let (nanos, seconds) = self.0.parts();
        vec![("wall", Value::Uint64(nanos)), ("ext", Value::Int64(seconds)), ("loc", Value::Uint64(0))]
    }

    fn to_json(&self) -> Value {
        self.0.rfc3339_nano().into()
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.0.instant == other.0.instant)
    }
}

fn compare(time: &Time, other: &Time, name: &str) -> Value {
    let order = time.instant.cmp(&other.instant);
    match name {
        "After" => order.is_gt().into(),
        "Before" => order.is_lt().into(),
        "Equal" => order.is_eq().into(),
        "Compare" => Value::Int(order as i64),
        _ => Value::object(DurationObject(time.since(other))),
    }
}

/// A `time.Duration`.
struct DurationObject(Duration);

impl Object for DurationObject {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed("time.Duration")
    }

    fn kind(&self) -> Kind {
        Kind::Named
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let known =
            ["Hours", "Minutes", "Seconds", "Milliseconds", "Microseconds", "Nanoseconds", "String", "Abs"];
        match name {
            "Round" | "Truncate" => Some(Signature::fixed(&[DURATION])),
            name => known.contains(&name).then_some(NONE),
        }
    }

    fn call(&self, _clock: &dyn Clock, name: &str, args: &[Value]) -> CallResult {
        let nanos = self.0.0;
        // Whole units and the rest apart, as Go does it, so that the last digits agree.
        let parts = |unit: i64| Value::Float64((nanos / unit) as f64 + (nanos % unit) as f64 / unit as f64);
        Ok(match name {
            "Hours" => parts(3_600_000_000_000),
            "Minutes" => parts(60_000_000_000),
            "Seconds" => parts(1_000_000_000),
            "Milliseconds" => Value::Int64(nanos / 1_000_000),
            "Microseconds" => Value::Int64(nanos / 1_000),
            "Nanoseconds" => Value::Int64(nanos),
            "String" => self.0.to_string().into(),
            "Abs" => Value::object(Self(Duration(nanos.saturating_abs()))),
            "Round" => Value::object(Self(self.0.round(as_duration(&args[0])))),
            _ => {
                let unit = as_duration(&args[0]).0;
                Value::object(Self(Duration(if unit <= 0 { nanos } else { nanos - nanos % unit })))
            }
        })
    }

    fn content(&self) -> Option<Value> {
        Some(Value::Int64(self.0.0))
    }

    fn stringer(&self) -> Option<String> {
        Some(self.0.to_string())
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.0 == other.0)
    }
}

/// A `time.Month` or `time.Weekday`.
struct NumberObject {
    type_name: &'static str,
    number: i64,
    name: &'static str,
}

impl NumberObject {
    fn value(type_name: &'static str, (number, name): (i64, &'static str)) -> Value {
        Value::object(Self { type_name, number, name })
    }
}

impl Object for NumberObject {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(self.type_name)
    }

    fn kind(&self) -> Kind {
        Kind::Named
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "String").then_some(NONE)
    }

    fn call(&self, _clock: &dyn Clock, _name: &str, _args: &[Value]) -> CallResult {
        Ok(self.name.into())
    }

    fn content(&self) -> Option<Value> {
        Some(Value::Int(self.number))
    }

    fn stringer(&self) -> Option<String> {
        Some(self.name.to_owned())
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.number == other.number)
    }
}
