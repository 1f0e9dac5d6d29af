//! A run as one word on the command line: `TENANT/WORKSPACE/RUN|FLOW/OWNER/RUN_ID`.

use std::{fmt, str::FromStr};

use tollgate_client::v1;

/// A run, as people write it. A `/` within a part is written `%2F`, and a `%` is written `%25`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunPath(pub(crate) v1::RunKey);

impl FromStr for RunPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        let [tenant, workspace, kind, owner, run] = parts.as_slice() else {
            return Err(format!(
                "has {} parts; write TENANT/WORKSPACE/RUN/OWNER/RUN_ID, or FLOW in the middle for an orchestration",
                parts.len()
            ));
        };
        let owner_kind = match *kind {
            "RUN" => v1::OwnerKind::Run,
            "FLOW" => v1::OwnerKind::Flow,
            other => return Err(format!("the third part is {other:?}; it must be RUN or FLOW")),
        };
        Ok(Self(v1::RunKey {
            tenant: decode(tenant),
            workspace: decode(workspace),
            owner_kind: owner_kind.into(),
            owner_id: decode(owner),
            run_id: decode(run),
        }))
    }
}

impl fmt::Display for RunPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0.owner_kind() {
            v1::OwnerKind::Flow => "FLOW",
            v1::OwnerKind::Run | v1::OwnerKind::Unspecified => "RUN",
        };
        let v1::RunKey { tenant, workspace, owner_id, run_id, .. } = &self.0;
        write!(f, "{}/{}/{kind}/{}/{}", encode(tenant), encode(workspace), encode(owner_id), encode(run_id))
    }
}

fn encode(part: &str) -> String {
    part.replace('%', "%25").replace('/', "%2F")
}

fn decode(part: &str) -> String {
    part.replace("%2F", "/").replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_written_as_it_is_read() {
        for text in ["acme/support/RUN/agent/run-1", "a%2Fb/w/FLOW/50%25/r", "a%252F/w/RUN/o/r"] {
            assert_eq!(text.parse::<RunPath>().unwrap().to_string(), text);
        }
        assert_eq!("a%2Fb/w/RUN/o/r".parse::<RunPath>().unwrap().0.tenant, "a/b");
    }

    #[test]
    fn what_is_no_run_says_how_one_is_written() {
        assert!("acme/support".parse::<RunPath>().unwrap_err().contains("TENANT/WORKSPACE"));
        assert!("a/b/run/c/d".parse::<RunPath>().unwrap_err().contains("RUN or FLOW"));
    }
}
