//! Cedar's errors about a bundle's texts, as findings. Only texts of the bundle pass here, never a call's.

use cedar_policy::ffi::DetailedError;

use crate::{
    codes::FindingCode,
    diagnostic::{Findings, SourceText},
};

/// Records an error and those related to it; `offset` is where the text that Cedar saw begins in the source.
pub(crate) fn record(findings: &mut Findings, code: FindingCode, source: &SourceText, offset: usize, error: DetailedError) {
    let DetailedError { message, help, source_locations, related, .. } = error;
    let label = source_locations.into_iter().next();
    let place = label.as_ref().map(|label| offset + label.loc.start..offset + label.loc.end.max(label.loc.start + 1));
    let message = strip_policy(&message).to_owned();
    let finding = match place {
        Some(place) => findings.at(code, source, place, message),
        None if offset > 0 => findings.at(code, source, offset..offset, message),
        None => findings.about(code, &source.path, message),
    };
    finding.hint = help.or_else(|| label.and_then(|label| label.label)).map(|hint| strip_policy(&hint).to_owned());
    for error in related {
        record(findings, code, source, offset, error);
    }
}

/// Cedar begins many messages with the id of the policy, which the place already says.
fn strip_policy(message: &str) -> &str {
    let rest = message.strip_prefix("for policy `").and_then(|rest| rest.split_once("`, "));
    rest.map_or(message, |(_, rest)| rest)
}
