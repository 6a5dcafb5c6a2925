//! `completion/complete`.

use rmcp::{
    ErrorData,
    model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference},
};

use crate::prompts::WITH_ARGUMENTS;

const VALUES: [&str; 4] = ["paris", "park", "party", "testing"];

pub(crate) fn complete(request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let known = matches!(&request.r#ref, Reference::Prompt(prompt) if prompt.name == WITH_ARGUMENTS);
    let begin = request.argument.value.as_str();
    let values = VALUES.into_iter().filter(|value| known && value.starts_with(begin)).map(str::to_owned).collect();
    let info = CompletionInfo::with_all_values(values).map_err(|what| ErrorData::internal_error(what, None))?;
    Ok(CompleteResult::new(info))
}
