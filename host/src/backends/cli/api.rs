//! Models without a client of their own: the loop of [`crate::model_agent`], which is part of this program. Where a
//! model is asked and with which key is settled here, from the user's variables alone; the key goes along as a variable
//! of that one process.

use super::{Client, CommandInputs, Rest, Start, counts_nothing, own};
use crate::backends::Invocation;
use crate::model_agent::place::{self, Wrong};
use crate::model_agent::{KEY, ModelSettings, Provider, Task, tools};

const fn client(
    (name, form, title): (&'static str, &'static str, &'static str),
    vendor: &'static str,
    sign_in: &'static str,
    own: &'static [&'static str],
    command: fn(&CommandInputs<'_>) -> Start,
) -> Client {
    Client {
        name,
        form,
        title,
        vendor,
        program: "",
        rest: Rest::ModelAt,
        tried: [0, 0, 0],
        sign_in,
        own,
        names_itself_by: &[],
        needs: &tools::NEEDED,
        counts_on: false,
        takes_schema: false,
        resumes_fragments: true,
        usage_files: &[],
        count: counts_nothing,
        command,
        hear: own::hear,
    }
}

pub(super) const ANTHROPIC: Client = client(
    ("anthropic", "anthropic[:<model>]", "a model of Anthropic's, with an API key"),
    "Anthropic",
    "set ANTHROPIC_API_KEY in your environment, or name a variable with `models.keys`",
    &["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"],
    |inputs| start(Provider::Anthropic, inputs),
);

pub(super) const OPENAI: Client = client(
    ("openai", "openai[:<model>]@<url>", "a model behind an OpenAI-compatible API"),
    "OpenAI",
    "set OPENAI_API_KEY in your environment for api.openai.com; for another host name the variable with `models.keys`",
    &["OPENAI_API_KEY", "OPENAI_BASE_URL"],
    |inputs| start(Provider::Openai, inputs),
);

pub(super) const OLLAMA: Client = client(
    ("ollama", "ollama[:<model>]", "a model on this machine"),
    "Ollama",
    "name the variable that holds the key of this host with `models.keys`",
    &["OLLAMA_HOST", "ARCHEFLOW_OLLAMA_BASE_URL", "ARCHEFLOW_OLLAMA_ALLOW_REMOTE"],
    |inputs| start(Provider::Ollama, inputs),
);

fn start(provider: Provider, inputs: &CommandInputs<'_>) -> Start {
    let settled = place::settle(provider, inputs.model, inputs.tier, inputs.variables);
    let (url, model, key, wrong) = match settled {
        Ok(settled) => (settled.place.url, settled.model, settled.key, None),
        Err(wrong) => {
            let for_a_key = matches!(wrong, Wrong::NoKey { .. });
            (String::new(), String::new(), None, Some((wrong.to_string(), for_a_key)))
        }
    };
    let task = Task {
        provider,
        model,
        url,
        writes: inputs.writes,
        home: inputs.home.to_owned(),
        resumes: inputs.resumes.map(|session| session.id.clone()),
        settings: ModelSettings::read(inputs.variable(place::SETTINGS)),
        wrong,
    };
    let args = vec!["__model".into(), task.written().into()];
    let env = key.map(|key| (KEY.into(), key));
    Start {
        invocation: Invocation { program: inputs.me.into(), args },
        env: env.into_iter().collect(),
        linked: Vec::new(),
        files: Vec::new(),
    }
}
