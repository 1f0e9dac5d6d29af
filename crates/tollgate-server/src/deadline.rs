//! The caller's deadline, as gRPC carries it.

use std::time::Duration;

use tonic::metadata::MetadataMap;

/// How much of a caller's time is kept for the way back, so that the answer arrives before the
/// caller's own clock gives up: a tenth of it, at most this.
const RETURN_MARGIN_MAX: Duration = Duration::from_millis(20);

/// How long a call may take: the caller's limit less the way back, or the default; at most `max`.
pub(crate) fn time_limit(asked: Option<Duration>, default: Duration, max: Duration) -> Duration {
    match asked {
        None => default.min(max),
        Some(asked) => asked.saturating_sub((asked / 10).min(RETURN_MARGIN_MAX)).min(max),
    }
}

/// The `grpc-timeout` of a request: up to eight digits and a unit
/// (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>). One that is malformed is none.
pub(crate) fn grpc_timeout(metadata: &MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(value * 3_600)),
        "M" => Some(Duration::from_secs(value * 60)),
        "S" => Some(Duration::from_secs(value)),
        "m" => Some(Duration::from_millis(value)),
        "u" => Some(Duration::from_micros(value)),
        "n" => Some(Duration::from_nanos(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeout(text: &'static str) -> Option<Duration> {
        let mut metadata = MetadataMap::new();
        metadata.insert("grpc-timeout", text.parse().unwrap());
        grpc_timeout(&metadata)
    }

    #[test]
    fn every_unit_is_read() {
        assert_eq!(timeout("2H"), Some(Duration::from_hours(2)));
        assert_eq!(timeout("2M"), Some(Duration::from_mins(2)));
        assert_eq!(timeout("2S"), Some(Duration::from_secs(2)));
        assert_eq!(timeout("99999999m"), Some(Duration::from_millis(99_999_999)));
        assert_eq!(timeout("7u"), Some(Duration::from_micros(7)));
        assert_eq!(timeout("7n"), Some(Duration::from_nanos(7)));
    }

    #[test]
    fn what_is_malformed_is_no_timeout() {
        for text in ["", "S", "1", "-1S", "123456789S", "1s", "1.5S", "é"] {
            assert_eq!(timeout(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_way_back_is_kept_free() {
        let (default, max) = (Duration::from_secs(10), Duration::from_mins(1));
        assert_eq!(time_limit(None, default, max), default);
        assert_eq!(time_limit(Some(Duration::from_millis(100)), default, max), Duration::from_millis(90));
        assert_eq!(time_limit(Some(Duration::from_secs(1)), default, max), Duration::from_millis(980));
        assert_eq!(time_limit(Some(Duration::from_mins(10)), default, max), max);
    }
}
