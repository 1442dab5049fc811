-- SPDX-License-Identifier: GPL-2.0-only
--
-- rdmastream in Wireshark and tshark: its TCP option, HELLO, and the records on TCP, as
-- Documentation/protocol.rst has them.
--
--	tshark -X lua_script:rdmastream.lua -r FILE -O rdmastream,rdmastream_option
--
-- or copy it into the directory of personal Lua plugins (Help, About, Folders).  A
-- connection whose HELLO was not captured: Decode As, rdmastream.

local MAGIC = ByteArray.new("d5 52 53 54 52 4d 0d 0a")
local HELLO_LEN = 80
local HEADER_LEN = 8

local roles = { [1] = "SYN", [2] = "SYNACK", [3] = "CONFIRM" }
local types = {
	[1] = "DATA", [2] = "ACK", [3] = "GRANT", [4] = "SWITCH", [5] = "REVOKE",
	[6] = "BROKEN", [7] = "RESUME", [8] = "FIN", [9] = "URG", [10] = "LINK",
	[11] = "STOPPED", [12] = "PLAIN",
}

local option = Proto("rdmastream_option", "rdmastream TCP option")
local of = {
	version = ProtoField.uint8("rdmastream_option.version", "Highest version", base.DEC,
				   nil, 0xf0),
	role = ProtoField.uint8("rdmastream_option.role", "Role", base.DEC, roles, 0x07),
	prelude = ProtoField.bool("rdmastream_option.prelude", "Prelude", 8, nil, 0x08),
	nonce = ProtoField.bytes("rdmastream_option.nonce", "Nonce"),
}
option.fields = of
local malformed_option = ProtoExpert.new("rdmastream_option.malformed",
	"Malformed: counts as none", expert.group.MALFORMED, expert.severity.WARN)
option.experts = { malformed_option }

local tcp_options = Field.new("tcp.options")

local proto = Proto("rdmastream", "rdmastream")
local f = {
	magic = ProtoField.bytes("rdmastream.hello.magic", "Magic"),
	hello_len = ProtoField.uint16("rdmastream.hello.len", "Length"),
	version_min = ProtoField.uint8("rdmastream.hello.version_min", "Lowest version"),
	version_max = ProtoField.uint8("rdmastream.hello.version_max", "Highest version"),
	role = ProtoField.uint8("rdmastream.hello.role", "Role", base.DEC, roles),
	nonce = ProtoField.bytes("rdmastream.hello.nonce", "Nonce"),
	caps = ProtoField.uint32("rdmastream.hello.caps", "Capabilities", base.HEX),
	ib = ProtoField.bool("rdmastream.hello.caps.ib", "Has an InfiniBand or RoCE device", 32, nil, 1),
	iwarp = ProtoField.bool("rdmastream.hello.caps.iwarp", "Has an iWARP device", 32, nil, 16),
	drained = ProtoField.bool("rdmastream.hello.caps.drained", "Is drained of RDMA", 32, nil, 4),
	understands_urg = ProtoField.bool("rdmastream.hello.caps.urg", "Understands URG", 32,
					  nil, 2),
	understands_plain = ProtoField.bool("rdmastream.hello.caps.plain", "Understands PLAIN", 32,
					    nil, 8),
	cm_port = ProtoField.uint16("rdmastream.hello.cm_port", "Port of rdma_cm"),
	naddr = ProtoField.uint16("rdmastream.hello.naddr", "Addresses"),
	instance = ProtoField.bytes("rdmastream.hello.instance", "Instance"),
	token = ProtoField.uint64("rdmastream.hello.token", "Token", base.HEX),
	window = ProtoField.uint64("rdmastream.hello.window", "Window"),
	secret = ProtoField.bytes("rdmastream.hello.secret", "Secret"),
	address = ProtoField.ipv6("rdmastream.hello.address", "RDMA address"),

	prelude_len = ProtoField.uint32("rdmastream.prelude.len", "Bytes of the prelude or span"),

	type = ProtoField.uint8("rdmastream.type", "Type", base.DEC, types),
	flags = ProtoField.uint8("rdmastream.flags", "Flags", base.HEX),
	len = ProtoField.uint32("rdmastream.len", "Length of payload"),
	data = ProtoField.bytes("rdmastream.data", "Bytes of the stream"),
	data_len = ProtoField.uint32("rdmastream.data.len", "How many"),
	consumed = ProtoField.uint64("rdmastream.consumed", "Consumed"),
	limit = ProtoField.uint64("rdmastream.limit", "Limit"),
	offset = ProtoField.uint64("rdmastream.offset", "Offset"),
	epoch = ProtoField.uint32("rdmastream.epoch", "Epoch"),
	link = ProtoField.uint32("rdmastream.link", "Link"),
	ring = ProtoField.uint32("rdmastream.ring", "Ring"),
	addr = ProtoField.uint64("rdmastream.addr", "Remote address", base.HEX),
	rkey = ProtoField.uint32("rdmastream.rkey", "Remote key", base.HEX),
	size = ProtoField.uint32("rdmastream.size", "Size"),
	count = ProtoField.uint64("rdmastream.count", "Arrived"),
	span = ProtoField.uint64("rdmastream.span", "Bytes that follow without records"),
	proof = ProtoField.uint64("rdmastream.proof", "Proof", base.HEX),
	reserved = ProtoField.bytes("rdmastream.reserved", "Reserved"),
}
proto.fields = f
local malformed = ProtoExpert.new("rdmastream.malformed", "Malformed: resets the connection",
	expert.group.MALFORMED, expert.severity.ERROR)
proto.experts = { malformed }

-- Payloads of control records: fields in a row, with their bytes.
local layouts = {
	ACK = { { f.consumed, 8 }, { f.limit, 8 } },
	GRANT = { { f.epoch, 4 }, { f.link, 4 }, { f.ring, 4 }, { f.rkey, 4 }, { f.addr, 8 },
		  { f.size, 4 }, { f.reserved, 4 }, { f.proof, 8 } },
	SWITCH = { { f.offset, 8 }, { f.epoch, 4 }, { f.ring, 4 }, { f.addr, 8 },
		   { f.rkey, 4 }, { f.reserved, 4 }, { f.proof, 8 } },
	REVOKE = { { f.epoch, 4 }, { f.reserved, 4 } },
	RESUME = { { f.epoch, 4 }, { f.reserved, 4 }, { f.count, 8 } },
	FIN = { { f.offset, 8 } },
	PLAIN = { { f.span, 8 } },
	LINK = {},
}
layouts.BROKEN = layouts.REVOKE
layouts.STOPPED = layouts.REVOKE
layouts.URG = layouts.FIN

-- What the line of a record says of it.
local words = {
	ACK = function(p) return "consumed " .. p(0, 8):uint64() .. " limit " .. p(8, 8):uint64() end,
	GRANT = function(p) return "epoch " .. p(0, 4):uint() .. " size " .. p(24, 4):uint() end,
	SWITCH = function(p)
		local epoch = p(8, 4):uint()
		return "to " .. (epoch == 0 and "tcp" or "ring, epoch " .. epoch) ..
		       " at " .. p(0, 8):uint64()
	end,
	REVOKE = function(p) return "epoch " .. p(0, 4):uint() end,
	RESUME = function(p) return "epoch " .. p(0, 4):uint() .. " arrived " .. p(8, 8):uint64() end,
	FIN = function(p) return "at " .. p(0, 8):uint64() end,
	PLAIN = function(p) return tostring(p(0, 8):uint64()) end,
}
words.BROKEN = words.REVOKE
words.STOPPED = words.REVOKE
words.URG = words.FIN

-- Of a direction that began with a prelude: the frame of its HELLO, false before that.
local hello_frame = {}
local tcp_stream = Field.new("tcp.stream")

local function direction(pinfo, back)
	return tostring(tcp_stream()) .. " " .. (back and pinfo.dst_port or pinfo.src_port)
end

-- Bytes that are left of its span, and what was found of each place: packets are looked at
-- again, in any order.
local span_left = {}
local span_at = {}

function proto.init()
	hello_frame = {}
	span_left = {}
	span_at = {}
end

local function is_hello(tvb, at)
	return tvb:len() - at >= MAGIC:len() and tvb(at, MAGIC:len()):bytes() == MAGIC
end

local function show_hello(tvb, pinfo, tree)
	local sub = tree:add(proto, tvb(), "rdmastream HELLO")
	local caps

	pinfo.cols.info:append(" HELLO")
	if tvb:len() < HELLO_LEN or tvb:len() ~= HELLO_LEN + 16 * tvb(26, 2):uint() then
		sub:add_proto_expert_info(malformed)
		return
	end
	sub:add(f.magic, tvb(0, 8))
	sub:add(f.hello_len, tvb(8, 2))
	sub:add(f.version_min, tvb(10, 1))
	sub:add(f.version_max, tvb(11, 1))
	sub:add(f.role, tvb(12, 1))
	sub:add(f.nonce, tvb(13, 7))
	caps = sub:add(f.caps, tvb(20, 4))
	caps:add(f.ib, tvb(20, 4))
	caps:add(f.understands_urg, tvb(20, 4))
	caps:add(f.drained, tvb(20, 4))
	caps:add(f.understands_plain, tvb(20, 4))
	caps:add(f.iwarp, tvb(20, 4))
	sub:add(f.cm_port, tvb(24, 2))
	sub:add(f.naddr, tvb(26, 2))
	sub:add(f.reserved, tvb(28, 4))
	sub:add(f.instance, tvb(32, 16))
	sub:add(f.token, tvb(48, 8))
	sub:add(f.window, tvb(56, 8))
	sub:add(f.secret, tvb(64, 16))
	for at = HELLO_LEN, tvb:len() - 16, 16 do
		sub:add(f.address, tvb(at, 16))
	end
end

local function show_fields(p, sub, layout)
	local at = 0

	for _, field in ipairs(layout) do
		sub:add(field[1], p(at, field[2]))
		at = at + field[2]
	end
end

local function layout_bytes(layout)
	local sum = 0

	for _, field in ipairs(layout) do
		sum = sum + field[2]
	end
	return sum
end

local function show_record(tvb, pinfo, tree)
	local number = tvb(0, 1):uint()
	local name = types[number]
	local len = tvb:len() - HEADER_LEN
	local sub = tree:add(proto, tvb(), "rdmastream " .. (name or "record " .. number))
	local layout = layouts[name]
	local text = name or "unknown"

	sub:add(f.type, tvb(0, 1))
	sub:add(f.flags, tvb(1, 1))
	sub:add(f.reserved, tvb(2, 2))
	sub:add(f.len, tvb(4, 4))
	if tvb(1, 3):uint() ~= 0 or number == 0 or (not name and (number >= 128 or len > 256)) or
	   (name == "DATA" and (len == 0 or len > 262144)) or
	   (layout and layout_bytes(layout) ~= len) then
		sub:add_proto_expert_info(malformed)
		text = text .. " (malformed)"
	elseif name == "DATA" then
		sub:add(f.data, tvb(HEADER_LEN, len))
		sub:add(f.data_len, len):set_generated()
		text = text .. " " .. len
	elseif layout and len > 0 then
		show_fields(tvb(HEADER_LEN, len), sub, layout)
		text = text .. " " .. words[name](tvb(HEADER_LEN, len))
		if name == "PLAIN" and not pinfo.visited then
			span_left[direction(pinfo)] = tvb(HEADER_LEN, 8):uint64():tonumber()
		end
	end
	sub:append_text(text:sub(#(name or "unknown") + 1))
	pinfo.cols.info:append(" " .. text)
end

-- Bytes of the prelude from @at on, 0: none.
local function prelude_length(tvb, pinfo, at)
	local key = direction(pinfo)
	local frame = hello_frame[key]

	if frame == nil or (frame and pinfo.number > frame) then
		return 0
	end
	for i = at, tvb:len() - MAGIC:len() do
		if is_hello(tvb, i) then
			hello_frame[key] = pinfo.number
			return i - at
		end
	end
	return hello_frame[key] == pinfo.number and 0 or tvb:len() - at
end

-- Bytes of a span from @at on, 0: none.  HELLO may end it early.
local function span_length(tvb, pinfo, at)
	local key = direction(pinfo)
	local place = key .. " " .. pinfo.number .. " " .. at
	local left = span_left[key] or 0
	local n = math.min(left, tvb:len() - at)

	if span_at[place] or pinfo.visited or n == 0 then
		return span_at[place] or 0
	end
	for i = at, at + n - 1 do
		if is_hello(tvb, i) then
			n = i - at
			left = n
			break
		end
	end
	span_left[key] = left - n
	span_at[place] = n
	return n
end

local function show_plain(tvb, pinfo, tree, what)
	local sub = tree:add(proto, tvb(), "rdmastream " .. what .. ", " .. tvb:len() .. " bytes")

	sub:add(f.prelude_len, tvb:len()):set_generated()
	pinfo.cols.info:append(" " .. what .. " " .. tvb:len())
end

local plain = 0		-- of the present PDU
local plain_is = ""

local function pdu_length(tvb, pinfo, at)
	plain, plain_is = prelude_length(tvb, pinfo, at), "prelude"
	if plain == 0 then
		plain, plain_is = span_length(tvb, pinfo, at), "span"
	end
	if plain > 0 then
		return plain
	end
	if tvb:len() - at < HEADER_LEN and pinfo.can_desegment > 0 then
		return 0	-- asked again when more has come
	end
	if is_hello(tvb, at) then
		-- its length may not have come yet: asked again then
		return tvb:len() - at < 10 and HELLO_LEN or math.max(tvb(at + 8, 2):uint(), 10)
	end
	return HEADER_LEN + tvb(at + 4, 4):uint()
end

local function show_pdu(tvb, pinfo, tree)
	if plain > 0 then
		show_plain(tvb, pinfo, tree, plain_is)
	elseif is_hello(tvb, 0) then
		show_hello(tvb, pinfo, tree)
	else
		show_record(tvb, pinfo, tree)
	end
	return tvb:len()
end

function proto.dissector(tvb, pinfo, tree)
	pinfo.cols.protocol = "rdmastream"
	pinfo.cols.info = ""
	-- 1: a piece of a prelude or span may be shorter than a header
	dissect_tcp_pdus(tvb, tree, 1, pdu_length, show_pdu)
	return tvb:len()
end

-- HELLO tells the protocol of a connection, from its first bytes on, unless its port is
-- somebody else's.
proto:register_heuristic("tcp", function(tvb, pinfo, tree)
	if not is_hello(tvb, 0) then
		return false
	end
	pinfo.conversation = proto
	proto.dissector(tvb, pinfo, tree)
	return true
end)
DissectorTable.get("tcp.port"):add_for_decode_as(proto)

---- the option in TCP's header ----

local function show_option(tvb, pinfo, tree)
	local sub = tree:add(option, tvb)
	local role

	if tvb:len() ~= 12 then
		sub:add_proto_expert_info(malformed_option)
		return
	end
	role = tvb(4, 1):uint() % 8
	sub:add(of.version, tvb(4, 1))
	sub:add(of.role, tvb(4, 1))
	sub:add(of.prelude, tvb(4, 1))
	sub:add(of.nonce, tvb(5, 7))
	sub:append_text(", " .. (roles[role] or "unknown role"))
	-- the client will send HELLO, whatever else is spoken at that port
	if roles[role] == "SYNACK" then
		pinfo.conversation = proto
		if tvb(4, 1):uint() % 16 >= 8 and hello_frame[direction(pinfo)] == nil then
			hello_frame[direction(pinfo)] = false
			hello_frame[direction(pinfo, true)] = false
		end
	end
end

-- Wireshark has taken TCP's header apart: walk through its options once more.
function option.dissector(_, pinfo, tree)
	for _, field in ipairs({ tcp_options() }) do
		local tvb = field.range
		local at = 0

		while at < tvb:len() do
			local kind = tvb(at, 1):uint()
			local len = 1

			if kind == 0 then
				break
			elseif kind ~= 1 then
				len = at + 1 < tvb:len() and tvb(at + 1, 1):uint() or 0
				if len < 2 or at + len > tvb:len() then
					break
				end
			end
			if kind == 254 and len >= 4 and tvb(at + 2, 2):uint() == 0x5253 then
				show_option(tvb(at, len), pinfo, tree)
			end
			at = at + len
		end
	end
end
register_postdissector(option)
