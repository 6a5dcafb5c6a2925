//! Resources: two that stand still, one that is watched, one made from a template.

use rmcp::{
    ErrorData,
    model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate},
};
use serde_json::json;

use crate::picture::{PNG, PNG_TYPE};

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";
const TEMPLATE: (&str, &str) = ("test://template/", "/data");

pub(crate) fn list() -> Vec<Resource> {
    let resource = |uri: &str, name: &str, what: &str, form: &str| {
        Resource::new(uri, name).with_description(what).with_mime_type(form)
    };
    vec![
        resource(TEXT, "static-text", "A text that never changes", "text/plain"),
        resource(BINARY, "static-binary", "A picture that never changes", PNG_TYPE),
        resource(WATCHED, "watched-resource", "A text that can be subscribed to", "text/plain"),
    ]
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let uri = format!("{}{{id}}{}", TEMPLATE.0, TEMPLATE.1);
    let template = ResourceTemplate::new(uri, "template-data").with_description("The data of an id");
    vec![template.with_mime_type("application/json")]
}

pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = match uri {
        TEXT => ResourceContents::text("This is the content of the static text resource.", uri),
        BINARY => ResourceContents::blob(PNG, uri).with_mime_type(PNG_TYPE),
        WATCHED => ResourceContents::text("This is the content of the watched resource.", uri),
        _ => {
            let id = uri.strip_prefix(TEMPLATE.0).and_then(|rest| rest.strip_suffix(TEMPLATE.1));
            let id = id.filter(|id| !id.is_empty() && !id.contains('/')).ok_or_else(|| unknown(uri))?;
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Whether there is such a resource to subscribe to.
pub(crate) fn known(uri: &str) -> Result<(), ErrorData> {
    read(uri).map(drop)
}

fn unknown(uri: &str) -> ErrorData {
    ErrorData::resource_not_found(format!("no resource {uri}; resources/list has all"), Some(json!({ "uri": uri })))
}
