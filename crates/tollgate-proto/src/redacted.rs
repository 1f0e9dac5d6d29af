//! `Debug` for the messages that carry a call's content: it tells how much there is, never what.
//!
//! Each message is taken apart field by field, so that a field that joins it must be sorted here
//! before it compiles.

use std::fmt;

use crate::v1::{Claims, EvaluateRequest, EvaluateResponse, Outcome, ProviderFailed};

/// Stands in for a value that must not be printed.
struct Hidden(usize);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes]", self.0)
    }
}

/// Implements `Debug` for a message: the `shown` fields as they are, the `named` ones (enumerations,
/// which the wire holds as numbers) by name, of the `hidden` ones only their length.
macro_rules! redacted {
    ($message:ident { shown: [$($shown:ident),*], named: [$($named:ident),*], hidden: [$($hidden:ident),*] }) => {
        impl fmt::Debug for $message {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let Self { $($shown,)* $($named: _,)* $($hidden,)* } = self;
                f.debug_struct(stringify!($message))
                    $(.field(stringify!($named), &self.$named()))*
                    $(.field(stringify!($shown), $shown))*
                    $(.field(stringify!($hidden), &Hidden($hidden.len())))*
                    .finish()
            }
        }
    };
}

redacted!(EvaluateRequest {
    shown: [run, agent, tool, principal, tool_call_id, call_key, invocation_id, claims, runtime],
    named: [],
    hidden: [arguments_json]
});

redacted!(Claims { shown: [groups, approval], named: [], hidden: [attributes_json] });

redacted!(EvaluateResponse {
    shown: [tool_call_id, invocation_id, attempt, code, hook_id, generation, valid_until, sequence, position, repeat],
    named: [decision],
    hidden: [message]
});

redacted!(ProviderFailed { shown: [error_type], named: [], hidden: [error_message] });

redacted!(Outcome { shown: [tool_error, code, error_type], named: [kind, failure_kind], hidden: [error_message] });
