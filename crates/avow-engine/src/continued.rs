//! Where an attempt that went on from a checkpoint really began.

use avow_model::attempt::AttemptId;
use avow_model::digest::{ActionDigest, RegistrationDigest};
use avow_store::{RecordStore, StoreError};

/// The ledger heads under which the work of an attempt began: those of the first attempt that it goes on from.
/// Where that attempt is not on record any more nothing is known, so nothing is claimed. Otherwise work that was
/// begun before a registration would count as done under it.
pub(crate) fn heads_at_beginning(
    records: &dyn RecordStore,
    action: ActionDigest,
    continues: &[AttemptId],
    now: &[RegistrationDigest],
) -> Result<Vec<RegistrationDigest>, StoreError> {
    let Some(first) = continues.first() else { return Ok(now.to_vec()) };
    for digest in records.trace(action)? {
        if let Some(recorded) = records.attempt(digest)?
            && recorded.attempt.id == *first
        {
            return Ok(recorded.attempt.ledger_heads);
        }
    }
    Ok(Vec::new())
}
