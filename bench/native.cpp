// What an engineer would write for speed: simdjson's On-Demand parser, inet_pton and libmaxminddb, one thread, large buffers.
// On-Demand reads a line only as far as the field: unlike ipatlas, this does not find out whether the rest is JSON.
//
//   native splice json client.ip countries.mmdb FILE…    adds the member "geo" to JSON lines
//   native splice csv 2 countries.mmdb FILE…             appends three columns; the number is that of the column. Quotes are not read
//
// With `keep` in place of `splice`, the text to insert is kept for each entry of the database, and not made again for each line.
#include <arpa/inet.h>
#include <fcntl.h>
#include <maxminddb.h>
#include <simdjson.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

constexpr size_t BUFFER_BYTES = 4 << 20;

[[noreturn]] void fail(const char *what) {
  std::fprintf(stderr, "native: %s\n", what);
  std::exit(1);
}

class Output {
 public:
  void append(const char *bytes, size_t length) {
    if (length > BUFFER_BYTES - used_) flush();
    std::memcpy(buffer_.data() + used_, bytes, length);
    used_ += length;
  }
  void append(std::string_view text) { append(text.data(), text.size()); }
  void flush() {
    for (size_t done = 0; done < used_;) {
      const ssize_t written = write(1, buffer_.data() + done, used_ - done);
      if (written < 0) fail("cannot write");
      done += written;
    }
    used_ = 0;
  }

 private:
  std::vector<char> buffer_ = std::vector<char>(BUFFER_BYTES);
  size_t used_ = 0;
};

// Makes the text to insert for an address.
class Countries {
 public:
  Countries(const char *path, bool json, bool keepsTexts) : json_(json), keepsTexts_(keepsTexts) {
    write(none_, "", "", false);
    if (MMDB_open(path, MMDB_MODE_MMAP, &database_) != MMDB_SUCCESS) fail("cannot open the database");
  }

  const std::string &of(std::string_view address) {
    char terminated[INET6_ADDRSTRLEN];
    if (address.size() >= sizeof terminated) return none_;
    std::memcpy(terminated, address.data(), address.size());
    terminated[address.size()] = 0;
    sockaddr_in6 socket6{};
    sockaddr_in socket4{};
    const sockaddr *socket;
    if (address.find(':') == address.npos) {
      socket4.sin_family = AF_INET;
      if (inet_pton(AF_INET, terminated, &socket4.sin_addr) != 1) return none_;
      socket = reinterpret_cast<sockaddr *>(&socket4);
    } else {
      socket6.sin6_family = AF_INET6;
      if (inet_pton(AF_INET6, terminated, &socket6.sin6_addr) != 1) return none_;
      socket = reinterpret_cast<sockaddr *>(&socket6);
    }
    int error;
    MMDB_lookup_result_s result = MMDB_lookup_sockaddr(&database_, socket, &error);
    if (error != MMDB_SUCCESS || !result.found_entry) return none_;
    if (!keepsTexts_) return textOf(last_, result.entry);
    auto [entry, isNew] = texts_.try_emplace(result.entry.offset);
    return isNew ? textOf(entry->second, result.entry) : entry->second;
  }

 private:
  const std::string &textOf(std::string &text, MMDB_entry_s &entry) {
    MMDB_entry_data_s data;
    const auto string = [&](auto... path) -> std::string_view {
      if (MMDB_get_value(&entry, &data, path..., nullptr) != MMDB_SUCCESS || !data.has_data) return {};
      return {data.utf8_string, data.data_size};
    };
    const std::string_view code = string("country", "iso_code"), name = string("country", "names", "en");
    const bool isEu = MMDB_get_value(&entry, &data, "country", "is_in_european_union", nullptr) == MMDB_SUCCESS &&
                      data.has_data && data.boolean;
    text.clear();
    write(text, name, code, isEu);
    return text;
  }
  void write(std::string &text, std::string_view name, std::string_view code, bool isEu) const {
    const auto quoted = [&](std::string_view value) { text.append("\"").append(value).append("\""); };
    const auto json = [&](std::string_view value) {
      if (value.empty()) text.append("null");
      else quoted(value);
    };
    const std::string_view eu = isEu ? "true" : "false";
    if (json_) {
      text.append(",\"geo\":{\"country\":");
      json(name);
      text.append(",\"country_code\":");
      json(code);
      text.append(",\"is_eu\":").append(eu).append("}");
    } else {
      text.append(",");
      if (name.find(',') == name.npos) text.append(name);
      else quoted(name);
      text.append(",").append(code).append(",").append(eu);
    }
  }

  bool json_;
  bool keepsTexts_;
  std::string none_, last_;
  MMDB_s database_;
  std::unordered_map<uint32_t, std::string> texts_;
};

class JsonLines {
 public:
  JsonLines(std::string path, Countries &countries) : countries_(countries) {
    for (size_t from = 0; from <= path.size();) {
      const size_t dot = std::min(path.find('.', from), path.size());
      keys_.push_back(path.substr(from, dot - from));
      from = dot + 1;
    }
  }
  void line(const char *bytes, size_t length, size_t capacity, Output &output) {
    simdjson::ondemand::document document;
    simdjson::ondemand::value value;
    std::string_view address;
    if (parser_.iterate(bytes, length, capacity).get(document)) fail("a line is not JSON");
    auto error = document.find_field(keys_[0]).get(value);
    for (size_t i = 1; i < keys_.size() && !error; i++) error = value.find_field(keys_[i]).get(value);
    if (error || value.get_string().get(address)) fail("a line without the field");
    size_t end = length;
    while (end > 0 && bytes[end - 1] != '}') end--;
    output.append(bytes, end - 1);
    output.append(countries_.of(address));
    output.append(bytes + end - 1, length - end + 1);
    output.append("\n");
  }

 private:
  simdjson::ondemand::parser parser_;
  std::vector<std::string> keys_;
  Countries &countries_;
};

class CsvLines {
 public:
  CsvLines(const std::string &column, Countries &countries) : column_(std::stoi(column)), countries_(countries) {}
  void line(const char *bytes, size_t length, size_t, Output &output) {
    const char *cell = bytes, *end = bytes + length;
    const auto comma = [&] {
      const void *found = std::memchr(cell, ',', end - cell);
      return found == nullptr ? end : static_cast<const char *>(found);
    };
    for (int i = 0; i < column_; i++) cell = std::min(comma() + 1, end);
    output.append(bytes, length);
    output.append(isHeader_ ? HEADER : std::string_view(countries_.of({cell, size_t(comma() - cell)})));
    output.append("\n");
    isHeader_ = false;
  }

 private:
  static constexpr std::string_view HEADER = ",geo_country,geo_country_code,geo_is_eu";
  int column_;
  bool isHeader_ = true;  // of the first file; ipatlas leaves out the headers of the others
  Countries &countries_;
};

template <class Lines>
void readFile(const char *path, Lines &lines, Output &output) {
  static std::vector<char> buffer(BUFFER_BYTES + simdjson::SIMDJSON_PADDING);
  const int file = open(path, O_RDONLY);
  if (file < 0) fail("cannot open a file");
  for (size_t kept = 0;;) {
    const ssize_t got = read(file, buffer.data() + kept, BUFFER_BYTES - kept);
    if (got < 0 || kept == BUFFER_BYTES) fail("cannot read, or a line is longer than the buffer");
    const char *end = buffer.data() + kept + got, *line = buffer.data();
    while (const char *newline = static_cast<const char *>(std::memchr(line, '\n', end - line))) {
      lines.line(line, newline - line, buffer.data() + buffer.size() - line, output);
      line = newline + 1;
    }
    kept = end - line;
    std::memmove(buffer.data(), line, kept);
    if (got == 0) break;
  }
  close(file);
}

}  // namespace

int main(int count, char **arguments) {
  if (count < 6) fail("usage: native splice|keep json|csv FIELD DATABASE FILE…");
  const bool json = std::strcmp(arguments[2], "json") == 0;
  Countries countries(arguments[4], json, std::strcmp(arguments[1], "keep") == 0);
  Output output;
  for (int i = 5; i < count; i++) {
    if (json) {
      static JsonLines lines(arguments[3], countries);
      readFile(arguments[i], lines, output);
    } else {
      static CsvLines lines(arguments[3], countries);
      readFile(arguments[i], lines, output);
    }
  }
  output.flush();
}
