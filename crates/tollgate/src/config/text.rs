//! Values that are written as text: durations, socket modes, listening places.

use std::{net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

/// Longest duration of any key.
const SPAN_MAX: Duration = Duration::from_hours(24);

/// A positive duration of at most a day, written with its unit: `500ms`, `10s`, `2m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
        let fits = |span: &Duration| !span.is_zero() && *span <= SPAN_MAX;
        parsed.filter(fits).map(Self).ok_or_else(|| {
            format!("{text:?} is no duration here: write a positive number and its unit, such as 500ms or 10s; at most 24h")
        })
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        let nanos = span.0.as_nanos();
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
        let (unit, size) = units.into_iter().find(|(_, size)| nanos.is_multiple_of(*size)).unwrap_or(("ns", 1));
        format!("{}{unit}", nanos / size)
    }
}

/// A place to listen: `HOST:PORT` or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("unix:") {
            Some("") => Err("unix: names no path".to_owned()),
            Some(path) => Ok(Self::Unix(PathBuf::from(path))),
            None => text
                .parse()
                .map(Self::Tcp)
                .map_err(|_| format!("{text:?} is no place to listen: write ADDRESS:PORT or unix:PATH")),
        }
    }
}

impl TryFrom<String> for Place {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Place> for String {
    fn from(place: Place) -> Self {
        match place {
            Place::Tcp(address) => address.to_string(),
            Place::Unix(path) => format!("unix:{}", path.display()),
        }
    }
}

/// The mode of a socket, written in octal: `"0660"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Mode(pub(crate) u32);

impl TryFrom<String> for Mode {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mode = u32::from_str_radix(&text, 8).ok().filter(|mode| *mode <= 0o777);
        mode.map(Self).ok_or_else(|| format!("{text:?} is no mode: write octal digits in quotes, such as \"0660\""))
    }
}

impl From<Mode> for String {
    fn from(mode: Mode) -> Self {
        format!("{:04o}", mode.0)
    }
}
