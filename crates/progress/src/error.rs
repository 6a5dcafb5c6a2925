//! What can be wrong with a progress report.

use thiserror::Error;

/// Why a report was refused. Nothing was sent, and nothing changed: the work may go on and ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum ProgressError {
    /// Neither NaN nor an infinity is a number in JSON.
    #[error("progress {value} is not finite; report a finite number")]
    NotFinite {
        /// What was reported.
        value: f64,
    },
    /// Progress must increase with each notification (MCP, progress). Whole numbers from 2^53 on are compared as the
    /// wire carries them, as 64-bit floats, where neighbours can be equal.
    #[error("progress {value} is not greater than {last}, which was reported before; report larger numbers only")]
    NotGreater {
        /// What was reported.
        value: f64,
        /// The last number that was accepted.
        last: f64,
    },
    /// A fraction is from 0 to 1.
    #[error("fraction {value} is not within 0 and 1; 0.5 means half done")]
    OutOfRange {
        /// What was reported.
        value: f64,
    },
    /// A total is positive and finite.
    #[error("total {total} is not positive and finite; where it is not known, pass none")]
    BadTotal {
        /// The total that the emitter was made with.
        total: f64,
    },
    /// A weight is from 1e-9 to 1e9.
    #[error("weight {weight} is not within 1e-9 and 1e9; only the ratio to the other weights counts")]
    BadWeight {
        /// The weight that was asked for.
        weight: f64,
    },
    /// A split into no branches could never be complete.
    #[error("a split needs at least one weight; for branches that join later, use `branches`")]
    NoBranches,
    /// Branches within branches, deeper than 32.
    #[error("branches are nested deeper than 32; report from an outer one")]
    TooDeep,
    /// What is complete takes no more work.
    #[error("this work is complete, closed or was begun anew; split it, join it or raise its total before that")]
    Complete,
    /// The total of a request is bound when its emitter is made; only a branch's may change.
    #[error("the total of a request cannot change; split the emitter, and raise the total of a branch")]
    FixedTotal,
}
