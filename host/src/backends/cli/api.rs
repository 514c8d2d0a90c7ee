//! Models without a client of their own: the loop of [`crate::model_agent`], which is part of this program. Where a model is
//! asked and with which key is settled here, from the user's variables alone; the key goes along as a variable of that
//! one process.

use super::{Client, CommandInputs, Rest, Start, own};
use crate::backends::Invocation;
use crate::model_agent::place::{self, Wrong};
use crate::model_agent::{KEY, ModelSettings, Provider, Task, tools};

const fn client(
    name: &'static str,
    vendor: &'static str,
    sign_in: &'static str,
    own: &'static [&'static str],
    command: fn(&CommandInputs<'_>) -> Start,
) -> Client {
    Client {
        name,
        vendor,
        program: "",
        rest: Rest::ModelAt,
        tried: [0, 0, 0],
        sign_in,
        own,
        needs: &tools::NEEDED,
        counts_on: false,
        takes_schema: false,
        command,
        hear: own::hear,
    }
}

pub(super) const ANTHROPIC: Client = client(
    "anthropic",
    "Anthropic",
    "set ANTHROPIC_API_KEY in your environment, or name a variable with `models.keys`",
    &["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"],
    |errand| start(Provider::Anthropic, errand),
);

pub(super) const OPENAI: Client = client(
    "openai",
    "OpenAI",
    "set OPENAI_API_KEY in your environment for api.openai.com; for another host name the variable with `models.keys`",
    &["OPENAI_API_KEY", "OPENAI_BASE_URL"],
    |errand| start(Provider::Openai, errand),
);

pub(super) const OLLAMA: Client = client(
    "ollama",
    "Ollama",
    "name the variable that holds the key of this host with `models.keys`",
    &["OLLAMA_HOST", "ARCHEFLOW_OLLAMA_BASE_URL", "ARCHEFLOW_OLLAMA_ALLOW_REMOTE"],
    |errand| start(Provider::Ollama, errand),
);

fn start(provider: Provider, errand: &CommandInputs<'_>) -> Start {
    let settled = place::settle(provider, errand.model, errand.tier, errand.variables);
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
        writes: errand.writes,
        home: errand.home.to_owned(),
        resumes: errand.resumes.map(|session| session.id.clone()),
        settings: ModelSettings::read(errand.variable(place::SETTINGS)),
        wrong,
    };
    let args = vec!["__model".into(), task.written().into()];
    let env = key.map(|key| (KEY.into(), key));
    Start {
        invocation: Invocation { program: errand.me.into(), args },
        env: env.into_iter().collect(),
        lent: Vec::new(),
        files: Vec::new(),
    }
}
