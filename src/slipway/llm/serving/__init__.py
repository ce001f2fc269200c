"""A language model behind the HTTP interface of OpenAI."""
