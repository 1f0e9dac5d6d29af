//! Numbers of JSON, read exactly from their text.

/// `value * 10^scale` as an integer, where it is one and fits; never rounded.
pub(crate) fn scaled(text: &str, scale: i64) -> Option<i64> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (negative, mantissa) = mantissa.strip_prefix('-').map_or((false, mantissa), |rest| (true, rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    let trailing = digits.len() - digits.trim_end_matches('0').len();
    let power = exponent.parse::<i64>().ok()?.checked_add(scale)?;
    let power = power.checked_add(i64::try_from(trailing).ok()?)?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let power = u32::try_from(power).ok()?;
    let value = significant.parse::<i128>().ok()?.checked_mul(10_i128.checked_pow(power)?)?;
    i64::try_from(if negative { -value } else { value }).ok()
}

/// The text of a decimal of four digits, from its value times 10,000.
pub(crate) fn decimal_text(scaled: i64) -> String {
    let (sign, magnitude) = if scaled < 0 { ("-", scaled.unsigned_abs()) } else { ("", scaled.unsigned_abs()) };
    format!("{sign}{}.{:04}", magnitude / 10_000, magnitude % 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_long_takes_every_integral_form_and_no_other() {
        let max = "9223372036854775807";
        let min = "-9223372036854775808";
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("0.000", 0),
            ("0e99999999999999999999", 0),
            ("5", 5),
            ("5.0", 5),
            ("1e3", 1_000),
            ("1E+3", 1_000),
            ("120e-1", 12),
            ("-1.5e1", -15),
            ("0.001e3", 1),
            (max, i64::MAX),
            (min, i64::MIN),
            ("9223372036854775807.000", i64::MAX),
            ("922337203685477580.7e1", i64::MAX),
        ] {
            assert_eq!(scaled(text, 0), Some(value), "{text}");
        }
        for text in [
            "0.5",
            "1e-1",
            "9223372036854775808",
            "-9223372036854775809",
            "1e19",
            "1e308",
            "1.0000000000000000000001",
            "1e-99999999999999999999",
        ] {
            assert_eq!(scaled(text, 0), None, "{text}");
        }
    }

    #[test]
    fn b_decimal_is_exact_in_four_digits() {
        for (text, value) in [
            ("1.5", "1.5000"),
            ("0.0001", "0.0001"),
            ("1e-4", "0.0001"),
            ("-0.5", "-0.5000"),
            ("10", "10.0000"),
            ("922337203685477.5807", "922337203685477.5807"),
            ("-922337203685477.5808", "-922337203685477.5808"),
            ("1.50000", "1.5000"),
        ] {
            assert_eq!(scaled(text, 4).map(decimal_text).as_deref(), Some(value), "{text}");
        }
        for text in ["0.00001", "1e-5", "922337203685477.5808", "-922337203685477.5809"] {
            assert_eq!(scaled(text, 4), None, "{text}");
        }
    }
}
