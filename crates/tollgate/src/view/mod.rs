//! What people and scripts are shown: answers, outcomes, status, and the journal of a run.

mod json;
mod text;
mod timeline;

pub(crate) use json::{answer_json, completed_json, fact_json};
pub(crate) use text::{answer_text, completed_text, decision_text, outcome_text, status_text};
pub(crate) use timeline::Timeline;
