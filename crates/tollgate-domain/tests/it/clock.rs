//! Time: what is cut, what stops at an end, and what never goes below zero.

use tollgate_domain::{Monotonic, Timestamp};

#[test]
fn a_timestamp_is_its_microseconds_and_its_milliseconds_are_cut_towards_the_past() {
    for (micros, millis) in
        [(0, 0), (999, 0), (1_000, 1), (1_999, 1), (-1, -1), (-1_000, -1), (-1_001, -2), (i64::MIN, i64::MIN / 1_000 - 1)]
    {
        assert_eq!(Timestamp::from_micros(micros).as_micros(), micros);
        assert_eq!(Timestamp::from_micros(micros).as_millis(), millis, "{micros}");
    }
}

#[test]
fn a_later_time_stops_at_the_end_of_time() {
    assert_eq!(Timestamp::from_micros(-5).plus_micros(7).as_micros(), 2);
    assert_eq!(Timestamp::from_micros(5).plus_micros(u64::MAX).as_micros(), i64::MAX);
}

/// Facts of two sidecars may be out of order by their clocks.
#[test]
fn a_duration_by_the_wall_clock_is_never_below_zero() {
    let at = Timestamp::from_micros;
    assert_eq!(at(12).micros_since(at(5)), 7);
    assert_eq!(at(5).micros_since(at(5)), 0);
    assert_eq!(at(5).micros_since(at(12)), 0);
    assert_eq!(at(i64::MAX).micros_since(at(i64::MIN)), i64::MAX.unsigned_abs());
}

#[test]
fn a_duration_by_the_monotonic_clock_is_cut_to_microseconds_and_never_below_zero() {
    let at = Monotonic::from_nanos;
    assert_eq!(at(5_999).micros_since(at(2_000)), 3);
    assert_eq!(at(2_000).micros_since(at(5_999)), 0);
    assert_eq!(at(2_500_000_000).seconds_since(at(1_000_000_000)).to_string(), "1.5");
    assert_eq!(at(0).seconds_since(at(1)).to_string(), "0");
}
