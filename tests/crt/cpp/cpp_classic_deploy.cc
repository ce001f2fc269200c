// Library, graph and parameters apart, as classic programs deploy a model: from a file, and linked in.
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

using namespace tvm::runtime;

static std::string Read(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

static Module Create(const char *name, const std::string &graph, const Module &library) {
  const int device_type = kDLCPU;
  const int device_id = 0;
  return (*Registry::Get(name))(graph, library, device_type, device_id);
}

static void Run(const char *name, const std::string &folder, const Module &library) {
  const std::string data = Read(folder + "/model.params");
  TVMByteArray params;
  params.data = data.data();
  params.size = data.size();
  Module model = Create(name, Read(folder + "/model.json"), library);
  model.GetFunction("load_params")(params);
  NDArray input = NDArray::Empty({1, 3, 8, 8}, DataType::Float(32), DLDevice{kDLCPU, 0});
  std::fill_n(static_cast<float *>(input->data), 3 * 8 * 8, 1.0f);
  model.GetFunction("set_input")("input", input);
  model.GetFunction("run")();
  NDArray output = model.GetFunction("get_output")(0);
  for (int i = 0; i < 4; ++i) std::printf("%.6f ", static_cast<double>(static_cast<float *>(output->data)[i]));
  std::puts("");
}

static void Refuse(const std::string &graph, const Module &library) {
  try {
    Create("tvm.graph_executor.create", graph, library);
    std::puts("nothing");
  } catch (const tvm::Error &error) {
    std::puts(error.what());
  }
}

static std::string Replaced(std::string text, const std::string &from, const std::string &to) {
  const std::size_t at = text.find(from);
  return (at == std::string::npos) ? "no " + from : text.replace(at, from.size(), to);
}

// Whatever the text is, it is a graph or an error.
static void Damage(const std::string &graph, const Module &library) {
  unsigned state = 1;
  int refused = 0;
  const auto draw = [&state](std::size_t bound) {
    state = state * 1664525u + 1013904223u;
    return static_cast<std::size_t>(state >> 8) % bound;
  };
  for (int i = 0; i < 2000; ++i) {
    std::string text = graph;
    const std::size_t at = draw(text.size());
    switch (draw(3)) {
      case 0: text[at] = static_cast<char>(draw(256)); break;
      case 1: text.erase(at, 1 + draw(8)); break;
      default: text.insert(at, 1, "{}[],:\"0189-\\u"[draw(14)]);
    }
    try {
      Create("tvm.graph_executor.create", text, library);
    } catch (const tvm::Error &) {
      ++refused;
    }
  }
  std::puts(refused > 1000 ? "damaged graphs are refused" : "damaged graphs are accepted");
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  Module file = (*Registry::Get("runtime.ModuleLoadFromFile"))(folder + "/model.so", "so");
  Module linked = (*Registry::Get("runtime.SystemLib"))();
  Run("tvm.graph_executor.create", folder, file);
  Run("tvm.graph_runtime.create", folder, (*Registry::Get("module._GetSystemLib"))());
  const std::string graph = Read(folder + "/model.json");
  Refuse("", linked);
  Refuse("{\"nodes\": [] ", linked);
  Refuse("[]", linked);
  Refuse(Replaced(graph, "\"num_outputs\": \"1\"", "\"num_outputs\": \"65000\""), linked);
  Refuse(Replaced(graph, "\"float32\"", "\"float23x\""), linked);
  Refuse(Replaced(graph, "\"arg_nodes\": [", "\"arg_nodes\": [70000,"), linked);
  Refuse(Replaced(graph, "\"func_name\": \"tvmgen", "\"func_name\": \"none"), linked);
  Refuse(graph, Module());
  try {
    linked.GetFunction(LINKED_FUNCTION)(1);
  } catch (const tvm::Error &error) {
    std::puts(error.kind().c_str()); /* of compiled code that no loader has seen */
  }
  const std::vector<std::string> names = Registry::ListNames();
  std::printf("%d\n", static_cast<int>(std::count(names.begin(), names.end(), "runtime.SystemLib")));
  Registry::Register("tvm.graph_runtime.create").set_body_typed([] { return 7; });
  std::printf("%d\n", (*Registry::Get("tvm.graph_runtime.create"))().operator int());
  Damage(graph, file);
}
